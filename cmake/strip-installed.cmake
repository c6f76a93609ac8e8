# Runs during `cmake --install`, once for each program and library; TributaryStrip.cmake sets the variables. The
# component tributary-debug installs the debug file; every other component strips the installed copy, if it is there.
get_filename_component(name "${built}" NAME)
set(installed "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${installed_folder}/${name}")
set(debug_file "${work_folder}/${name}.debug")

function(run_objcopy)
  execute_process(COMMAND "${objcopy}" ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Build the debug file from the build's copy, so that both components see the same bytes: the link holds a checksum.
function(make_debug_file)
  file(MAKE_DIRECTORY "${work_folder}")
  run_objcopy(--only-keep-debug "${built}" "${debug_file}")
endfunction()

if(CMAKE_INSTALL_COMPONENT STREQUAL "tributary-debug")
  if(EXISTS "${built}")
    make_debug_file()
    file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${debug_folder}${CMAKE_INSTALL_PREFIX}/${installed_folder}"
         TYPE FILE FILES "${debug_file}")
  endif()
elseif(EXISTS "${installed}")
  execute_process(COMMAND "${readelf}" --sections --wide "${installed}" OUTPUT_VARIABLE sections COMMAND_ERROR_IS_FATAL ANY)
  if(sections MATCHES "\\.debug_info")  # else an earlier install of another component has stripped it
    make_debug_file()
    run_objcopy(--strip-unneeded "--add-gnu-debuglink=${debug_file}" "${installed}")
    message(STATUS "Stripped: ${installed}")
  endif()
endif()
