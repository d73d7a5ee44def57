#include "trace/raw_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kvo::trace {

std::unique_ptr<raw_source> raw_source::open(const std::string& path, std::string* reason) {
    int fd = STDIN_FILENO;
    if (path != "-") fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info = {};
    if (fd < 0 || fstat(fd, &info) != 0) {
        *reason = std::string("cannot be opened: ") + std::strerror(errno);
        if (fd > STDIN_FILENO) ::close(fd);
        return nullptr;
    }
    const bool regular = S_ISREG(info.st_mode);
    std::unique_ptr<raw_source> source(
        new raw_source(fd, regular ? static_cast<uint64_t>(info.st_size) : 0));
    // A pipe may give the first bytes one at a time.
    while (source->head_size_ < source->head_.size()) {
        const size_t n = source->read_fd(source->head_.data() + source->head_size_,
                                         source->head_.size() - source->head_size_, reason);
        if (!reason->empty()) return nullptr;
        if (n == 0) break;
        source->head_size_ += n;
    }
    return source;
}

raw_source::~raw_source() {
    if (fd_ != STDIN_FILENO) ::close(fd_);
}

size_t raw_source::read_fd(char* out, size_t n, std::string* reason) {
    for (;;) {
        const ssize_t got = ::read(fd_, out, n);
        if (got >= 0) return static_cast<size_t>(got);
        if (errno == EINTR) continue;
        *reason = std::string("cannot be read: ") + std::strerror(errno);
        return 0;
    }
}

size_t raw_source::read(char* out, size_t n, std::string* reason) {
    size_t got = std::min(n, head_size_ - head_given_);
    if (got > 0) {
        std::memcpy(out, head_.data() + head_given_, got);
        head_given_ += got;
    } else {
        got = read_fd(out, n, reason);
    }
    offset_bytes_ += got;
    return got;
}

}  // namespace kvo::trace
