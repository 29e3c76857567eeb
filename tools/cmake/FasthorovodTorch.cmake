# Finds torch through the interpreter, without importing it (seconds) and without its CMake package (which enables
# CUDA and stops where a CUDA build of torch meets another toolkit or none).
#
# Sets FASTHOROVOD_HAVE_TORCH, FASTHOROVOD_TORCH_DIR, FASTHOROVOD_TORCH_VERSION, and the target fasthorovod::torch.

set(FASTHOROVOD_TORCH_MINIMUM 2.13)

# A wheel without its extension is of no use, so there torch is not optional.
set(fasthorovod_torch_default AUTO)
if(SKBUILD)
  set(fasthorovod_torch_default ON)
endif()
fasthorovod_option(TORCH ${fasthorovod_torch_default} fasthorovod_look)
if(SKBUILD AND fasthorovod_look)
  set(FASTHOROVOD_WITH_TORCH ON)
endif()

# Asks the interpreter where torch is, and reads its version from the text of version.py.
function(fasthorovod_find_torch)
  set(FASTHOROVOD_TORCH_DIR "" PARENT_SCOPE)
  set(FASTHOROVOD_TORCH_VERSION "" PARENT_SCOPE)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
            "import importlib.util as u, os; s = u.find_spec('torch'); print(os.path.dirname(s.origin) if s else '')"
    OUTPUT_VARIABLE dir
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT dir OR NOT EXISTS "${dir}/version.py")
    return()
  endif()
  file(STRINGS "${dir}/version.py" line REGEX "^__version__ *=" LIMIT_COUNT 1)
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+[^'\"]*" version "${line}")
  set(FASTHOROVOD_TORCH_DIR "${dir}" PARENT_SCOPE)
  set(FASTHOROVOD_TORCH_VERSION "${version}" PARENT_SCOPE)
endfunction()

# Makes fasthorovod::torch from the folder of the wheel.
function(fasthorovod_make_torch_target)
  add_library(fasthorovod_dep_torch INTERFACE)
  add_library(fasthorovod::torch ALIAS fasthorovod_dep_torch)
  target_include_directories(
    fasthorovod_dep_torch SYSTEM INTERFACE "${FASTHOROVOD_TORCH_DIR}/include"
                                           "${FASTHOROVOD_TORCH_DIR}/include/torch/csrc/api/include")
  # torch's headers bring their own fmt, whose compiled part is nowhere to link.
  target_compile_definitions(fasthorovod_dep_torch INTERFACE FMT_HEADER_ONLY=1)
  foreach(name c10 torch_cpu torch torch_python)
    target_link_libraries(fasthorovod_dep_torch INTERFACE "${FASTHOROVOD_TORCH_DIR}/lib/lib${name}.so")
  endforeach()
endfunction()

if(fasthorovod_look AND Python_Interpreter_FOUND)
  fasthorovod_find_torch()
endif()

set(fasthorovod_found FALSE)
set(fasthorovod_torch_missing
    "torch is not visible to ${Python_EXECUTABLE}: install torch there, then type 'pip install --no-build-isolation .'.")
if(FASTHOROVOD_TORCH_DIR)
  if(FASTHOROVOD_TORCH_VERSION VERSION_LESS FASTHOROVOD_TORCH_MINIMUM)
    set(fasthorovod_torch_missing
        "torch ${FASTHOROVOD_TORCH_VERSION} is too old: type 'pip install \"torch>=${FASTHOROVOD_TORCH_MINIMUM}\"'.")
  elseif(NOT Python_Development.Module_FOUND)
    set(fasthorovod_torch_missing
        "Python's headers are missing: on Debian type 'apt install python3-dev', then configure again.")
  else()
    set(fasthorovod_found TRUE)
    fasthorovod_make_torch_target()
  endif()
endif()
fasthorovod_settle(TORCH ${fasthorovod_found} "${FASTHOROVOD_TORCH_VERSION}" "the PyTorch backend (module _C)"
                   "${fasthorovod_torch_missing}")
