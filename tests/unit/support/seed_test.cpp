// Tests of the seed that randomised tests start from. Single-threaded: they change the environment.
#include "support/seed.hpp"

#include <cstdlib>
#include <optional>
#include <string>

#include "support/catch.hpp"

namespace {

// Puts KVO_TEST_SEED back as it was, so that the order of test cases does not matter.
class seed_variable_guard {
public:
    seed_variable_guard() {
        if (const char* text = std::getenv(name)) old_ = text;
    }
    ~seed_variable_guard() {
        if (old_) {
            setenv(name, old_->c_str(), 1);
        } else {
            unsetenv(name);
        }
    }
    seed_variable_guard(const seed_variable_guard&) = delete;
    seed_variable_guard& operator=(const seed_variable_guard&) = delete;

    static constexpr const char* name = "KVO_TEST_SEED";

private:
    std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("The seed is fixed unless the environment names another") {
    seed_variable_guard guard;
    unsetenv(seed_variable_guard::name);
    CHECK(kvo::test::seed() == 1);
    setenv(seed_variable_guard::name, "77", 1);
    CHECK(kvo::test::seed() == 77);
    setenv(seed_variable_guard::name, "0x10", 1);
    CHECK(kvo::test::seed() == 16);
}
