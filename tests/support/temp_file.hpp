// A file with given bytes in the temporary folder, removed at the end of its life. Each object has
// a path of its own, so tests may run side by side.
#pragma once

#include <string>
#include <string_view>

namespace kvo::test {

class temp_file {
public:
    explicit temp_file(std::string_view bytes);
    ~temp_file();
    temp_file(const temp_file&) = delete;
    temp_file& operator=(const temp_file&) = delete;

    const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace kvo::test
