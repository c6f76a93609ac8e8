# tributary_strip_installed(TARGET...) removes debug information from the installed copies of these targets, as Debian's
# packages do. Each copy names its debug file in a section .gnu_debuglink.
#
#   cmake --install BUILD                               programs and libraries without debug information
#   cmake --install BUILD --component tributary-debug   the debug files, below PREFIX/lib/debug
#
# gdb looks into /usr/lib/debug; for another prefix: set debug-file-directory PREFIX/lib/debug
#
# Packagers whose tools split the debug information themselves (dh_strip) set TRIBUTARY_INSTALL_STRIPPED=OFF.
option(TRIBUTARY_INSTALL_STRIPPED "Install programs and libraries without debug information" ON)

function(tributary_strip_installed)
  if(NOT TRIBUTARY_INSTALL_STRIPPED OR NOT CMAKE_OBJCOPY OR NOT CMAKE_READELF)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    set(folder "${CMAKE_INSTALL_LIBDIR}")
    if(type STREQUAL "EXECUTABLE")
      set(folder "${CMAKE_INSTALL_BINDIR}")
    endif()
    get_target_property(own "${target}" TRIBUTARY_INSTALL_FOLDER)  # set for targets that are installed elsewhere
    if(own)
      set(folder "${own}")
    endif()
    set(settings "
      set(objcopy \"${CMAKE_OBJCOPY}\")
      set(readelf \"${CMAKE_READELF}\")
      set(built \"$<TARGET_FILE:${target}>\")
      set(installed_folder \"${folder}\")
      set(debug_folder \"lib/debug\")
      set(work_folder \"${PROJECT_BINARY_DIR}/debug\")")
    install(CODE "${settings}
      include(\"${PROJECT_SOURCE_DIR}/cmake/strip-installed.cmake\")" ALL_COMPONENTS)
  endforeach()
endfunction()
