# Parts the tree builds and passes without. FASTHOROVOD_WITH_X is AUTO (use it where it is), ON (its absence is an
# error) or OFF; FASTHOROVOD_HAVE_X says what came of it.

# Declares FASTHOROVOD_WITH_<name> and reports in <out> whether to look for the part at all.
function(fasthorovod_option name default out)
  set(FASTHOROVOD_WITH_${name} ${default} CACHE STRING "Use ${name}: AUTO, ON or OFF")
  set_property(CACHE FASTHOROVOD_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT FASTHOROVOD_WITH_${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "FASTHOROVOD_WITH_${name} is '${FASTHOROVOD_WITH_${name}}', but must be AUTO, ON or OFF.")
  endif()
  if(FASTHOROVOD_WITH_${name} STREQUAL "OFF")
    set(${out} FALSE PARENT_SCOPE)
  else()
    set(${out} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Settles FASTHOROVOD_HAVE_<name> from found; an absent part that was asked for stops here with how_to_get.
function(fasthorovod_settle name found version enables how_to_get)
  if(NOT found AND FASTHOROVOD_WITH_${name} STREQUAL "ON")
    message(FATAL_ERROR "${how_to_get}")
  endif()
  set(have FALSE)
  if(found)
    set(have TRUE)
  endif()
  fasthorovod_report("${name}" ${have} "${version}" "${enables}")
  set(FASTHOROVOD_HAVE_${name} ${have} PARENT_SCOPE)
endfunction()

# The interpreter runs the layering check and knows where torch is; its headers are needed by the extension only.
find_package(Python 3.9 QUIET COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
fasthorovod_report("Python >= 3.9" "${Python_Interpreter_FOUND}" "${Python_VERSION}" "layering test, binding")

include(FasthorovodTorch)

fasthorovod_option(HWLOC AUTO fasthorovod_look)
set(fasthorovod_found FALSE)
set(fasthorovod_hwloc_version "")
if(fasthorovod_look)
  find_path(FASTHOROVOD_HWLOC_INCLUDE hwloc.h)
  find_library(FASTHOROVOD_HWLOC_LIBRARY hwloc)
  find_path(FASTHOROVOD_HWLOC_CONFIG hwloc/autogen/config.h)  # for the version
  mark_as_advanced(FASTHOROVOD_HWLOC_INCLUDE FASTHOROVOD_HWLOC_LIBRARY FASTHOROVOD_HWLOC_CONFIG)
  if(FASTHOROVOD_HWLOC_INCLUDE AND FASTHOROVOD_HWLOC_LIBRARY)
    set(fasthorovod_found TRUE)
    if(FASTHOROVOD_HWLOC_CONFIG)
      file(STRINGS "${FASTHOROVOD_HWLOC_CONFIG}/hwloc/autogen/config.h" fasthorovod_hwloc_version
           REGEX "#define HWLOC_VERSION ")
      string(REGEX REPLACE ".*\"(.*)\".*" "\\1" fasthorovod_hwloc_version "${fasthorovod_hwloc_version}")
    endif()
    add_library(fasthorovod_dep_hwloc INTERFACE)
    add_library(fasthorovod::hwloc ALIAS fasthorovod_dep_hwloc)
    target_include_directories(fasthorovod_dep_hwloc SYSTEM INTERFACE ${FASTHOROVOD_HWLOC_INCLUDE})
    target_link_libraries(fasthorovod_dep_hwloc INTERFACE ${FASTHOROVOD_HWLOC_LIBRARY})
  endif()
endif()
fasthorovod_settle(HWLOC "${fasthorovod_found}" "${fasthorovod_hwloc_version}" "auxiliaries near the network card"
                   "hwloc was asked for but is missing: on Debian type 'apt install libhwloc-dev'.")

find_package(yaml-cpp QUIET CONFIG)
set(FASTHOROVOD_HAVE_YAML FALSE)
if(yaml-cpp_FOUND)
  set(FASTHOROVOD_HAVE_YAML TRUE)
  add_library(fasthorovod_dep_yaml INTERFACE)
  add_library(fasthorovod::yaml ALIAS fasthorovod_dep_yaml)
  target_link_libraries(fasthorovod_dep_yaml INTERFACE yaml-cpp)
endif()
fasthorovod_report("yaml-cpp" ${FASTHOROVOD_HAVE_YAML} "${yaml-cpp_VERSION}"
                   "launcher's config files (apt install libyaml-cpp-dev)")

fasthorovod_option(MPI AUTO fasthorovod_look)
set(fasthorovod_found FALSE)
if(fasthorovod_look)
  find_package(MPI QUIET COMPONENTS CXX)
  set(fasthorovod_found ${MPI_CXX_FOUND})
endif()
fasthorovod_settle(MPI "${fasthorovod_found}" "${MPI_CXX_VERSION}" "starting ranks under mpirun"
                   "MPI was asked for but is missing: on Debian type 'apt install libopenmpi-dev openmpi-bin'.")

fasthorovod_option(CUDA AUTO fasthorovod_look)
set(fasthorovod_found FALSE)
if(fasthorovod_look)
  find_package(CUDAToolkit QUIET)
  set(fasthorovod_found ${CUDAToolkit_FOUND})
endif()
fasthorovod_settle(
  CUDA "${fasthorovod_found}" "${CUDAToolkit_VERSION}" "kernels for tensors on GPUs"
  "CUDA was asked for but no toolkit was found: install NVIDIA's toolkit and put its nvcc on PATH.")

fasthorovod_option(NCCL AUTO fasthorovod_look)
set(fasthorovod_found FALSE)
if(fasthorovod_look)
  # torch's wheels bring NCCL along, headers included, beside torch itself.
  find_path(FASTHOROVOD_NCCL_INCLUDE nccl.h
            HINTS ${CUDAToolkit_INCLUDE_DIRS} "${FASTHOROVOD_TORCH_DIR}/../nvidia/nccl/include")
  mark_as_advanced(FASTHOROVOD_NCCL_INCLUDE)
  if(FASTHOROVOD_NCCL_INCLUDE)
    set(fasthorovod_found TRUE)
    file(STRINGS "${FASTHOROVOD_NCCL_INCLUDE}/nccl.h" fasthorovod_nccl_lines
         REGEX "#define NCCL_(MAJOR|MINOR|PATCH) ")
    string(REGEX REPLACE "[^0-9]*([0-9]+)" "\\1." fasthorovod_nccl_version "${fasthorovod_nccl_lines}")
    string(REGEX REPLACE "\\.$" "" fasthorovod_nccl_version "${fasthorovod_nccl_version}")
  endif()
endif()
fasthorovod_settle(
  NCCL "${fasthorovod_found}" "${fasthorovod_nccl_version}" "reduction between GPUs of one host"
  "NCCL was asked for but nccl.h was not found: install libnccl-dev from NVIDIA, or a CUDA build of torch.")
