# The table printed at the end of configuring: every outside part, whether it is here, and what it is for.

set_property(GLOBAL PROPERTY fasthorovod_report_rows "")

# Pads text with blanks on the right up to width.
function(fasthorovod_pad text width out)
  string(LENGTH "${text}" length)
  math(EXPR missing "${width} - ${length}")
  if(missing GREATER 0)
    string(REPEAT " " ${missing} blanks)
    string(APPEND text "${blanks}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Adds one row: found is a boolean, version may be empty.
function(fasthorovod_report name found version enables)
  set(state "missing")
  if(found)
    set(state "found")
  endif()
  if(version STREQUAL "")
    set(version "-")
  endif()
  fasthorovod_pad("${name}" 16 name)
  fasthorovod_pad("${state}" 9 state)
  fasthorovod_pad("${version}" 16 version)
  set_property(GLOBAL APPEND PROPERTY fasthorovod_report_rows "${name}${state}${version}${enables}")
endfunction()

function(fasthorovod_print_report)
  get_property(rows GLOBAL PROPERTY fasthorovod_report_rows)
  message(STATUS "part            state    version         what it is for")
  foreach(row IN LISTS rows)
    message(STATUS "${row}")
  endforeach()
  set(sanitizers "none")
  if(FASTHOROVOD_SANITIZE)
    list(JOIN FASTHOROVOD_SANITIZE " and " sanitizers)
  endif()
  message(STATUS "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}, "
                 "sanitizers: ${sanitizers}, tests: ${BUILD_TESTING}, benches: ${FASTHOROVOD_BUILD_BENCH}")
endfunction()
