#include "support/temp_file.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace kvo::test {

temp_file::temp_file(std::string_view bytes) {
    path_ = (std::filesystem::temp_directory_path() / "kvo_test_XXXXXX").string();
    const int fd = mkstemp(path_.data());
    size_t done = 0;
    while (fd >= 0 && done < bytes.size()) {
        const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
        if (n <= 0) break;
        done += static_cast<size_t>(n);
    }
    if (fd < 0 || close(fd) != 0 || done < bytes.size()) {
        std::perror(path_.c_str());
        std::abort();
    }
}

temp_file::~temp_file() { unlink(path_.c_str()); }

}  // namespace kvo::test
