# The verbs that the layers use: sangam_layer, sangam_tests, sangam_tests_left_out.
get_filename_component(SANGAM_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)

# sangam_layer(NAME SOURCES ... [USES ...]): a static library sangam_NAME that sees the whole tree by path;
# tests/tidy holds the include directions.
function(sangam_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;USES" ${ARGN})
  if(LAYER_SOURCES)
    add_library(sangam_${name} STATIC ${LAYER_SOURCES})
    target_include_directories(sangam_${name} PUBLIC ${SANGAM_ROOT})
    target_link_libraries(sangam_${name} PUBLIC ${LAYER_USES} Threads::Threads)
  else()
    add_library(sangam_${name} INTERFACE)
    target_include_directories(sangam_${name} INTERFACE ${SANGAM_ROOT})
    target_link_libraries(sangam_${name} INTERFACE ${LAYER_USES} Threads::Threads)
  endif()
endfunction()

# sangam_tests(LAYER SOURCES ... USES ...): the doctest binary unit_LAYER; sources lie in tests/unit/LAYER.
function(sangam_tests layer)
  cmake_parse_arguments(TESTS "" "" "SOURCES;USES" ${ARGN})
  list(TRANSFORM TESTS_SOURCES PREPEND ${SANGAM_ROOT}/tests/unit/${layer}/)
  add_executable(unit_${layer} ${SANGAM_ROOT}/tests/unit/main.cpp ${TESTS_SOURCES})
  target_include_directories(unit_${layer} PRIVATE ${SANGAM_ROOT})
  target_link_libraries(unit_${layer} PRIVATE ${TESTS_USES} doctest::doctest)
  target_compile_definitions(unit_${layer} PRIVATE SANGAM_SOURCE_DIR="${SANGAM_ROOT}")
  add_test(NAME unit_${layer} COMMAND unit_${layer})
endfunction()

# sangam_tests_left_out(LAYER WHY): where unit_LAYER cannot be built, a binary that says so and counts as skipped.
function(sangam_tests_left_out layer why)
  add_executable(unit_${layer} ${SANGAM_ROOT}/tests/unit/left_out.cpp)
  target_compile_definitions(unit_${layer} PRIVATE SANGAM_LEFT_OUT="${why}")
  add_test(NAME unit_${layer} COMMAND unit_${layer})
  set_tests_properties(unit_${layer} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
