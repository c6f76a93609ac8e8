# Cross-builds for arm64 (DPUs, Graviton, Grace) with Debian's g++-aarch64-linux-gnu, and runs the tests under
# qemu-user-static.
#
#   TRIBUTARY_ARM64_SYSROOT  a folder with the arm64 libraries for the build; scripts/test-arm64 makes one. Unset: the
#                            system's, on Debian with `dpkg --add-architecture arm64` and packages as libssl-dev:arm64.
# QEMU_CPU chooses the emulated CPU when the tests run: cortex-a72 has NEON alone, max has SVE, too.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# CMake reads this file again for every check that it compiles, so this line passes the setting on.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TRIBUTARY_ARM64_SYSROOT)
if(TRIBUTARY_ARM64_SYSROOT)
  set(CMAKE_FIND_ROOT_PATH "${TRIBUTARY_ARM64_SYSROOT}" /usr/aarch64-linux-gnu)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
  string(APPEND CMAKE_C_FLAGS_INIT " -isystem ${TRIBUTARY_ARM64_SYSROOT}/usr/include/aarch64-linux-gnu")
  string(APPEND CMAKE_CXX_FLAGS_INIT " -isystem ${TRIBUTARY_ARM64_SYSROOT}/usr/include/aarch64-linux-gnu")
  set(OPENSSL_USE_STATIC_LIBS ON)  # so the emulated programs need only the compiler's own libraries
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

find_program(TRIBUTARY_QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64)
if(TRIBUTARY_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${TRIBUTARY_QEMU_AARCH64}")
  if(TRIBUTARY_ARM64_SYSROOT)
    list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -L /usr/aarch64-linux-gnu)  # the compiler's own libraries
  endif()
endif()
