# Finds the C++ Actor Framework's core library as the target CAF::core. Debian's libcaf-dev ships headers and
# libraries but no CMake package file.
include(FindPackageHandleStandardArgs)
find_package(Threads REQUIRED)
find_path(CAF_INCLUDE_DIR caf/config.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
if(CAF_INCLUDE_DIR)
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp version_line REGEX "^#define CAF_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+$" version_number "${version_line}")
  math(EXPR major "${version_number} / 10000")
  math(EXPR minor "${version_number} / 100 % 100")
  math(EXPR patch "${version_number} % 100")
  set(CAF_VERSION ${major}.${minor}.${patch})
endif()
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION)
if(CAF_FOUND AND NOT TARGET CAF::core)
  add_library(CAF::core SHARED IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION ${CAF_CORE_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
