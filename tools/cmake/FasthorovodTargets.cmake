# How a folder declares what it builds. Sources and headers are listed by name; a list that is still empty is fine.

include(GNUInstallDirs)

# Where installed programs go: onto PATH through a wheel's scripts folder, or into bin.
set(FASTHOROVOD_SCRIPTS_DIR "${CMAKE_INSTALL_BINDIR}")
if(SKBUILD)
  set(FASTHOROVOD_SCRIPTS_DIR "${SKBUILD_SCRIPTS_DIR}")
endif()

# fasthorovod_library(<folder> [SOURCES ...] [HEADERS ...] [LINK ...] [LINK_PRIVATE ...])
# The folder's static library fasthorovod::<folder>. Headers listed are checked to stand alone by the target
# all_verify_interface_header_sets.
function(fasthorovod_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS;LINK;LINK_PRIVATE")
  set(target fasthorovod_${folder})
  set(public INTERFACE)
  if(arg_SOURCES)
    set(public PUBLIC)
    add_library(${target} STATIC ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE fasthorovod_flags ${arg_LINK_PRIVATE})
  else()
    add_library(${target} INTERFACE)
  endif()
  add_library(fasthorovod::${folder} ALIAS ${target})
  target_include_directories(${target} ${public} "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} ${public} ${arg_LINK})
  if(arg_HEADERS)
    target_sources(${target} ${public} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_HEADERS})
  endif()
endfunction()

# fasthorovod_program(<name> [SOURCES ...] [LINK ...] [BESIDE_MODULE])
# A program users start; BESIDE_MODULE puts a copy into the Python package, where the extension looks for it.
function(fasthorovod_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "BESIDE_MODULE" "" "SOURCES;LINK")
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE fasthorovod_flags ${arg_LINK})
  target_link_options(${name} PRIVATE $<$<CONFIG:Release>:-s>)
  install(TARGETS ${name} RUNTIME DESTINATION "${FASTHOROVOD_SCRIPTS_DIR}")
  if(arg_BESIDE_MODULE AND SKBUILD)
    install(TARGETS ${name} RUNTIME DESTINATION fasthorovod)
  endif()
endfunction()

# fasthorovod_plugin(<name> [SOURCES ...] [LINK ...])
# A shared object that the library opens when it needs it, from beside the program or the extension. It shows only what
# its sources mark as visible. While building, it lies with the programs of tools.
function(fasthorovod_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} MODULE ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tools")
  target_link_libraries(${name} PRIVATE fasthorovod_flags ${arg_LINK})
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL $<$<CONFIG:Release>:-s>)
  install(TARGETS ${name} LIBRARY DESTINATION "${FASTHOROVOD_SCRIPTS_DIR}")
  if(SKBUILD)
    install(TARGETS ${name} LIBRARY DESTINATION fasthorovod)
  endif()
endfunction()

# fasthorovod_test(<folder> [NAME <name>] [WITH_AUX] [SOURCES ...] [LINK ...] [LABELS ...] [TIMEOUT <seconds>])
# One GoogleTest program test_<folder>, or test_<folder>_<name>: tests that start real processes, or need another
# label or time limit, get a program of their own. The label is unit and the limit 60 s a case unless said. WITH_AUX:
# the tests start auxiliaries, whose program lies in the folder FASTHOROVOD_AUX_FOLDER.
function(fasthorovod_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WITH_AUX" "NAME;TIMEOUT" "SOURCES;LINK;LABELS")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(target test_${folder})
  if(arg_NAME)
    string(APPEND target "_${arg_NAME}")
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE fasthorovod_flags fasthorovod::${folder} ${arg_LINK} GTest::gmock
                                          GTest::gtest_main)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  # The libraries are what is optimised and watched. A test's own source takes twice as long to compile with both.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if("undefined" IN_LIST FASTHOROVOD_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  if(arg_WITH_AUX)
    add_dependencies(${target} fasthorovod-aux)
    target_compile_definitions(${target} PRIVATE FASTHOROVOD_AUX_FOLDER="$<TARGET_FILE_DIR:fasthorovod-aux>")
  endif()
  # Cases are listed when ctest starts, not while building: a build runs nothing it has just made.
  gtest_discover_tests(
    ${target}
    TEST_PREFIX "${folder}/"
    NO_PRETTY_VALUES
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT "${arg_TIMEOUT}" LABELS "${arg_LABELS}")
endfunction()

# fasthorovod_bench(<folder> [NAME <name>] [SOURCES ...] [LINK ...])
# One Google Benchmark program bench_<folder>, or bench_<folder>_<name>.
function(fasthorovod_bench folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "SOURCES;LINK")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(target bench_${folder})
  if(arg_NAME)
    string(APPEND target "_${arg_NAME}")
  endif()
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE fasthorovod_flags ${arg_LINK} benchmark::benchmark_main)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
endfunction()

# A source that sees torch's headers takes 1.2 GB to compile; so many at a time fit into memory.
cmake_host_system_information(RESULT fasthorovod_memory_mb QUERY AVAILABLE_PHYSICAL_MEMORY)
math(EXPR fasthorovod_torch_jobs "${fasthorovod_memory_mb} / 1500 + 1")
set_property(GLOBAL APPEND PROPERTY JOB_POOLS fasthorovod_torch_jobs=${fasthorovod_torch_jobs})

# fasthorovod_extension([SOURCES ...] [LINK ...])
# The Python module fasthorovod._C against the torch that was found. It shows no symbol but its init function, and
# finds torch's libraries in the wheel beside its package.
function(fasthorovod_extension)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SOURCES;LINK")
  if(NOT arg_SOURCES)
    return()
  endif()
  python_add_library(fasthorovod_extension MODULE WITH_SOABI ${arg_SOURCES})
  set_target_properties(
    fasthorovod_extension
    PROPERTIES OUTPUT_NAME _C
               JOB_POOL_COMPILE fasthorovod_torch_jobs
               LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/python/fasthorovod"
               INSTALL_RPATH "$ORIGIN/../torch/lib")
  target_compile_definitions(fasthorovod_extension
                             PRIVATE TORCH_EXTENSION_NAME=_C
                                     FASTHOROVOD_TORCH_VERSION="${FASTHOROVOD_TORCH_VERSION}")
  target_link_libraries(fasthorovod_extension PRIVATE fasthorovod_flags fasthorovod::torch ${arg_LINK})
  target_link_options(fasthorovod_extension PRIVATE -Wl,--exclude-libs,ALL $<$<CONFIG:Release>:-s>)
  install(TARGETS fasthorovod_extension LIBRARY DESTINATION fasthorovod)
endfunction()
