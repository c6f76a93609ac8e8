# Runs during `cmake --install`: the unit of ${service}, its user, its directories, and the samples ${files} of its
# configuration. With prefix /usr the configuration is in /etc. A sample never replaces an existing file.
set(etc "${CMAKE_INSTALL_PREFIX}/etc")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(etc "/etc")
endif()

# This is a macro, because file(INSTALL) adds to a variable of the caller, from which the manifest is made.
macro(install_adapted file folder)
  file(READ "${source}/${file}" text)
  string(REPLACE "/usr/bin/" "${CMAKE_INSTALL_PREFIX}/bin/" text "${text}")
  string(REGEX REPLACE "/etc/tributary([ /])" "${etc}/tributary\\1" text "${text}")
  file(WRITE "${work}/${file}" "${text}")
  file(INSTALL "${work}/${file}" DESTINATION "${folder}")
endmacro()

install_adapted(systemd/${service}.service "${CMAKE_INSTALL_PREFIX}/lib/systemd/system")
install_adapted(sysusers.d/${service}.conf "${CMAKE_INSTALL_PREFIX}/lib/sysusers.d")
install_adapted(tmpfiles.d/${service}.conf "${CMAKE_INSTALL_PREFIX}/lib/tmpfiles.d")
file(GLOB drop_ins RELATIVE "${source}" "${source}/systemd/${service}.service.d/*.conf")
foreach(drop_in IN LISTS drop_ins)
  install_adapted(${drop_in} "${CMAKE_INSTALL_PREFIX}/share/doc/tributary/${service}.service.d")
endforeach()
foreach(file IN LISTS files)
  if(NOT EXISTS "$ENV{DESTDIR}${etc}/tributary/${file}")
    install_adapted(${file} "${etc}/tributary")
  endif()
endforeach()
