# Installed and build-tree packages: CMake config with kvoffload::kvoffload, ::static and ::headers,
# and a pkg-config file. Both find everything relative to themselves, so the prefix may be moved.
include(CMakePackageConfigHelpers)

# The header carries the version for those who only have the header; both must say the same.
file(READ capi/include/kvoffload/kvo_base.h base_header)
set(number "([0-9]+).*")
string(REGEX REPLACE
       ".*KVO_VERSION_MAJOR ${number}KVO_VERSION_MINOR ${number}KVO_VERSION_PATCH ${number}"
       "\\1.\\2.\\3" header_version "${base_header}")
if(NOT header_version STREQUAL PROJECT_VERSION)
    message(FATAL_ERROR " kvo_base.h says version ${header_version}, the build ${PROJECT_VERSION}")
endif()

set(installed_targets kvoffload_headers)
foreach(target kvoffload kvoffload_static)
    if(TARGET ${target})
        list(APPEND installed_targets ${target})
    endif()
endforeach()
set_target_properties(kvoffload_headers PROPERTIES EXPORT_NAME headers)
if(TARGET kvoffload_static)
    # The archive is libkvoffload.a beside libkvoffload.so; only the target names differ.
    set_target_properties(kvoffload_static PROPERTIES EXPORT_NAME static OUTPUT_NAME kvoffload)
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kvoffload")
install(TARGETS ${installed_targets} EXPORT kvoffloadTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT kvoffloadTargets NAMESPACE kvoffload:: DESTINATION "${package_dir}")
foreach(header_dir capi/include include)
    if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${header_dir}/kvoffload")
        install(DIRECTORY "${header_dir}/kvoffload" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
                FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
    endif()
endforeach()

configure_package_config_file(cmake/kvoffloadConfig.cmake.in
                              "${PROJECT_BINARY_DIR}/kvoffloadConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/kvoffloadConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/kvoffloadConfig.cmake"
              "${PROJECT_BINARY_DIR}/kvoffloadConfigVersion.cmake" DESTINATION "${package_dir}")
export(EXPORT kvoffloadTargets NAMESPACE kvoffload::
       FILE "${PROJECT_BINARY_DIR}/kvoffloadTargets.cmake")

# ${pcfiledir} is where pkg-config found the file; the way from there to the prefix depends on how
# deep the library folder is (lib, lib64, lib/x86_64-linux-gnu).
file(RELATIVE_PATH prefix_from_pc "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
configure_file(cmake/kvoffload.pc.in "${PROJECT_BINARY_DIR}/kvoffload.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/kvoffload.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
