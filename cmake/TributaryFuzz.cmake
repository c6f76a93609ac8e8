# tributary_add_fuzz(NAME SOURCES ... [LIBRARIES ...] [MUTATIONS number])
# Builds a function LLVMFuzzerTestOneInput in one of two forms. With -DTRIBUTARY_FUZZ=ON (clang; the preset `fuzz`) it
# is the fuzzer NAME_fuzz, for scripts/fuzz. In all other builds it is NAME_replay, a test of the unit tier: it runs all
# inputs of corpus/NAME.txt in this folder, and MUTATIONS mutations of each input, from fixed seeds (default: 64; give
# fewer if a mutation takes long).
function(tributary_add_fuzz name)
  cmake_parse_arguments(arg "" "MUTATIONS" "SOURCES;LIBRARIES" ${ARGN})
  set(corpus "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}.txt")
  if(TRIBUTARY_FUZZ)
    add_executable(${name}_fuzz ${arg_SOURCES})
    target_link_libraries(${name}_fuzz PRIVATE tributary::warnings ${arg_LIBRARIES})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    set_property(GLOBAL APPEND_STRING PROPERTY TRIBUTARY_FUZZERS "${name} $<TARGET_FILE:${name}_fuzz> ${corpus}\n")
    return()
  endif()
  add_executable(${name}_replay ${arg_SOURCES})
  target_link_libraries(${name}_replay PRIVATE tributary::warnings ${arg_LIBRARIES} tributary_fuzz_replay)
  add_test(NAME fuzz_${name}_replay COMMAND ${name}_replay "${corpus}" ${arg_MUTATIONS})
  set_tests_properties(fuzz_${name}_replay PROPERTIES LABELS unit TIMEOUT 120)
endfunction()
