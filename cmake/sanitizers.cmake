# One interface target, kvo_sanitizers, driven by KVO_SANITIZE; empty when none is asked for. It
# carries link options too: every executable and the shared object must use the same run time.
add_library(kvo_sanitizers INTERFACE)
set(sanitize_flags "")
if(KVO_SANITIZE STREQUAL "address-undefined")
    set(sanitize_flags -fsanitize=address,undefined -fno-sanitize-recover=all
                       -fno-omit-frame-pointer)
elseif(KVO_SANITIZE STREQUAL "thread")
    set(sanitize_flags -fsanitize=thread -fno-omit-frame-pointer)
    # gcc warns that fences are invisible to ThreadSanitizer; that is a limit of the tool and must
    # not stop the build.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(kvo_sanitizers INTERFACE -Wno-tsan)
    endif()
elseif(KVO_SANITIZE)
    message(FATAL_ERROR "KVO_SANITIZE is '${KVO_SANITIZE}'; use address-undefined, thread or ''")
endif()
if(KVO_SANITIZE)
    # gcc loses track of initialisation in instrumented code and then warns about correct code.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(kvo_sanitizers INTERFACE -Wno-maybe-uninitialized)
    endif()
    target_compile_options(kvo_sanitizers INTERFACE ${sanitize_flags})
    target_link_options(kvo_sanitizers INTERFACE ${sanitize_flags})
endif()
