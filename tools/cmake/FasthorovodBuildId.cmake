# The build id: a hash of the sources and of what shapes the binary. The extension and the auxiliary must agree on the
# layout of shared memory, so an auxiliary with another id is refused. A hash, not a time: building the same sources
# twice, or in two folders, gives parts that fit each other.
#
# Included by the project it adds the target fasthorovod_build_id, which runs this same file as a script at every
# build; the files it writes change only with the id, so nothing is compiled again without need.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(fasthorovod_build_id_dir "${PROJECT_BINARY_DIR}/generated")
  string(TOUPPER "${CMAKE_BUILD_TYPE}" fasthorovod_config)
  add_custom_target(
    fasthorovod_build_id
    COMMAND
      ${CMAKE_COMMAND} "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DOUT_DIR=${fasthorovod_build_id_dir}"
      "-DVERSION=${PROJECT_VERSION}" "-DTORCH_VERSION=${FASTHOROVOD_TORCH_VERSION}"
      "-DSHAPE=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS_${fasthorovod_config}} ${FASTHOROVOD_SANITIZE}"
      -P "${CMAKE_CURRENT_LIST_FILE}"
    BYPRODUCTS "${fasthorovod_build_id_dir}/build_id.cc" "${fasthorovod_build_id_dir}/_build_info.py"
    COMMENT "Hashing the sources"
    VERBATIM)
  if(SKBUILD)
    install(FILES "${fasthorovod_build_id_dir}/_build_info.py" DESTINATION fasthorovod)
  endif()
  return()
endif()

set(hashes "${VERSION} ${SHAPE}")
foreach(folder core transport compression ops tools)
  file(GLOB_RECURSE files RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/${folder}/*.h" "${SOURCE_DIR}/${folder}/*.cc")
  list(SORT files)
  foreach(file IN LISTS files)
    file(SHA256 "${SOURCE_DIR}/${file}" hash)
    string(APPEND hashes "\n${file} ${hash}")
  endforeach()
endforeach()
string(SHA256 BUILD_ID "${hashes}")
string(SUBSTRING "${BUILD_ID}" 0 16 BUILD_ID)
configure_file("${SOURCE_DIR}/core/build_id.cc.in" "${OUT_DIR}/build_id.cc" @ONLY)
configure_file("${SOURCE_DIR}/torch_binding/_build_info.py.in" "${OUT_DIR}/_build_info.py" @ONLY)
