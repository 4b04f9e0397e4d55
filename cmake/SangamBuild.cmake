# Compiler settings and libraries for the whole tree.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(SANGAM_SANITIZE "" CACHE STRING "Sanitizers to build with, as in -fsanitize=")

find_program(CCACHE ccache)
if(CCACHE)
  set(ccache_settings CCACHE_SLOPPINESS=pch_defines,time_macros)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND ccache_settings CCACHE_BASEDIR=${PROJECT_SOURCE_DIR})  # One cache for every clone.
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${ccache_settings} ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
add_compile_options(-Wall -Wextra -Wpedantic -Werror -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<CONFIG:Release>:-Wno-restrict>)  # False alarms on std::string: GCC bug 105651.
endif()
if(SANGAM_SANITIZE)
  # CAF forms a null reference for every actor spawned without arguments; see docs/decisions.md.
  add_compile_options(-fsanitize=${SANGAM_SANITIZE} -fno-sanitize=null -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SANGAM_SANITIZE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(doctest CONFIG REQUIRED)
enable_testing()

include(SangamLayers)
