# Options of the build, and the language, warning and sanitizer flags of our own code.

# A wheel holds neither tests nor benches; a tree that was configured with them keeps them (its cache wins).
set(fasthorovod_developer_default ON)
if(SKBUILD)
  set(fasthorovod_developer_default OFF)
endif()
option(BUILD_TESTING "Build the tests" ${fasthorovod_developer_default})
option(FASTHOROVOD_BUILD_BENCH "Build the benches" ${fasthorovod_developer_default})
option(FASTHOROVOD_WERROR "Treat warnings in our own code as errors" OFF)
set(FASTHOROVOD_SANITIZE "" CACHE STRING "Sanitizers: empty, address;undefined or thread")
set_property(CACHE FASTHOROVOD_SANITIZE PROPERTY STRINGS "" "address;undefined" "thread")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

add_library(fasthorovod_flags INTERFACE)
target_compile_options(fasthorovod_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 raises these falsely on inlined std::vector and std::string; clang and the sanitizers watch in its place.
  target_compile_options(fasthorovod_flags INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                                     -Wno-stringop-overread)
endif()
if(FASTHOROVOD_WERROR)
  target_compile_options(fasthorovod_flags INTERFACE -Werror)
endif()

# Sanitizers concern every object of a program, so they are set for the whole tree.
if(FASTHOROVOD_SANITIZE)
  if(NOT FASTHOROVOD_SANITIZE MATCHES "^(address;undefined|address|undefined|thread)$")
    message(FATAL_ERROR "FASTHOROVOD_SANITIZE is '${FASTHOROVOD_SANITIZE}', "
                        "but must be empty, 'address;undefined' or 'thread'.")
  endif()
  list(JOIN FASTHOROVOD_SANITIZE "," fasthorovod_sanitizers)
  set(fasthorovod_sanitize_flags -fsanitize=${fasthorovod_sanitizers})
  add_compile_options(${fasthorovod_sanitize_flags} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(${fasthorovod_sanitize_flags})
  if(FASTHOROVOD_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It does not know fences, and says so of each; what ours stands before is an atomic load.
    add_compile_options(-Wno-tsan)
  endif()
endif()

# For sources of vector kernels that compute. Ranks with unlike processors must round alike: a product and a sum that
# become one instruction round once instead of twice, and not every instruction set has that one.
set(fasthorovod_kernel_options -ffp-contract=off)
if(FASTHOROVOD_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 puts frames that are to outlive their function at addresses that vectors of 64 bytes can not have
  # (its bug 110027).
  list(APPEND fasthorovod_kernel_options --param=asan-use-after-return=0)
endif()
