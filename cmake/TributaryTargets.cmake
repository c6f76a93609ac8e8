# One interface target has all compiler flags; the project's own targets link it privately. It also sets the paths for
# includes: a public header is included from its include folder ("tributary/..."), any other header by its path from the
# repository's root.
add_library(tributary_warnings INTERFACE)
add_library(tributary::warnings ALIAS tributary_warnings)
target_compile_options(tributary_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wsign-conversion;-Wnon-virtual-dtor;-Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tributary_warnings INTERFACE -Wno-restrict)  # false alarms on string concatenation at -O2 and above (GCC bug 105329)
endif()
# Lets g++ collect its garbage only beyond 1 GiB, which saves some 8 % of the time; few sources come near it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tributary_warnings INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:--param=ggc-min-heapsize=1048576>)
endif()
if(TRIBUTARY_WERROR)
  target_compile_options(tributary_warnings INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()

target_include_directories(tributary_warnings INTERFACE ${PROJECT_SOURCE_DIR})

# Code that runs once for each command or start takes this target in place of tributary::warnings: it compiles at -O1, in
# two thirds of the time.
add_library(tributary_cold INTERFACE)
add_library(tributary::cold ALIAS tributary_cold)
target_link_libraries(tributary_cold INTERFACE tributary_warnings)
target_compile_options(tributary_cold INTERFACE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:C,CXX>>:-O1>)

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# ccache and mold only shorten the build; neither is needed.
find_program(TRIBUTARY_CCACHE ccache)
if(TRIBUTARY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${TRIBUTARY_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TRIBUTARY_CCACHE})
  # ccache keeps objects that use precompiled headers only if it may ignore the macros that these headers have seen.
  find_program(TRIBUTARY_ENV env REQUIRED)
  set(TRIBUTARY_CCACHE_FOR_COMPILED_HEADERS ${TRIBUTARY_ENV} CCACHE_SLOPPINESS=pch_defines,time_macros ${TRIBUTARY_CCACHE})
endif()

# The presets for whole builds compile several files as one (CMAKE_UNITY_BUILD): headers are read once for all of them,
# and the build takes a third of the time. Preset dev compiles each file alone, because a developer changes single
# files.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a joined file, GCC treats the anonymous types of a .cc file like types of a header, and warns without cause.
  target_compile_options(tributary_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# tributary_separate(FILE...)
# Compiles each of these files of this folder alone, because another file has the same names in an anonymous namespace,
# or because the file undefines a macro that other files need.
function(tributary_separate)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# A sanitizer must see every object of a process, so these flags, and no others, are global.
if(TRIBUTARY_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(TRIBUTARY_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)  # every object records which code has run
  endif()
elseif(TRIBUTARY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)  # the sanitizer does not understand fences; Asio's locks give the same order
  add_link_options(-fsanitize=thread)
elseif(TRIBUTARY_SANITIZE)
  message(FATAL_ERROR "TRIBUTARY_SANITIZE is '${TRIBUTARY_SANITIZE}'; it takes 'address', 'thread' or nothing")
endif()

# tributary_take_compiled_headers(TEST)
# Lets a test use GoogleTest's headers in the form that tests/compiled_headers.cc has compiled, which shortens the
# compilation of a test's source by a fifth. GCC accepts these headers only with the flags of their compilation. So a
# folder with its own flags does not use them, and a test with its own flags sets DISABLE_PRECOMPILE_HEADERS.
function(tributary_take_compiled_headers test)
  get_directory_property(flags COMPILE_OPTIONS)
  get_property(flags_of_headers GLOBAL PROPERTY TRIBUTARY_FLAGS_OF_COMPILED_HEADERS)
  if(NOT TARGET tributary_compiled_headers OR NOT "${flags}" STREQUAL "${flags_of_headers}")
    return()
  endif()
  target_precompile_headers(${test} REUSE_FROM tributary_compiled_headers)
  if(TRIBUTARY_CCACHE)
    set_target_properties(${test} PROPERTIES CXX_COMPILER_LAUNCHER "${TRIBUTARY_CCACHE_FOR_COMPILED_HEADERS}")
  endif()
endfunction()

# tributary_add_test(NAME label [PROGRAM program] [SOURCES ...] [LIBRARIES ...] [TIMEOUT seconds])
# Makes one ctest test of GoogleTest's tests in SOURCES: `ctest -L label` picks a tier. Without PROGRAM, the test has a
# program of its own. With PROGRAM, it shares one with other tests of this folder, and runs the tests of its own SOURCES
# only: several sources compile and link as one, in less than half the time. Options of the compiler then belong to the
# program, and the target NAME builds it.
function(tributary_add_test name label)
  cmake_parse_arguments(arg "" "PROGRAM;TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(arg_PROGRAM)
    tributary_add_to_test_program(${arg_PROGRAM} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES})
    add_custom_target(${name} DEPENDS ${arg_PROGRAM})
    add_test(NAME ${name} COMMAND ${arg_PROGRAM} --tests-of ${arg_SOURCES})
  else()
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE tributary::warnings ${arg_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
    tributary_take_compiled_headers(${name})
    add_test(NAME ${name} COMMAND ${name})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# tributary_add_to_test_program(PROGRAM SOURCES ... [LIBRARIES ...])
# Adds sources and libraries to a program of several tests, and makes the program at the first call.
function(tributary_add_to_test_program program)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT TARGET ${program})
    add_executable(${program})
    target_link_libraries(${program} PRIVATE tributary::warnings tributary_tests_of_files GTest::gmock GTest::gtest)
    tributary_take_compiled_headers(${program})
  endif()
  get_target_property(present ${program} SOURCES)
  foreach(source IN LISTS arg_SOURCES)
    if(NOT source IN_LIST present)
      target_sources(${program} PRIVATE "${source}")
    endif()
  endforeach()
  target_link_libraries(${program} PRIVATE ${arg_LIBRARIES})
endfunction()
