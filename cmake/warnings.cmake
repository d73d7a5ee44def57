# One interface target, kvo_warnings, with every warning our code must be free of.
# It is linked PRIVATE only, so users of the installed library never inherit it.
add_library(kvo_warnings INTERFACE)
target_compile_options(kvo_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                              -Wsign-conversion)
if(KVO_WERROR)
    target_compile_options(kvo_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(kvo_warnings INTERFACE -Wthread-safety)
endif()
# gcc 12 reports overlapping copies inside std::string that cannot happen (gcc bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(kvo_warnings INTERFACE -Wno-restrict)
endif()
