# Parts the tree cannot be built without. Each gets an alias of ours, so that a folder's CMakeLists.txt does not
# depend on how a distribution names or splits it.

# Adds a row for a required part, or stops with the Debian package that holds it.
function(fasthorovod_require name found version package enables)
  if(NOT found)
    message(FATAL_ERROR "${name} is missing: on Debian type 'apt install ${package}', then configure again.")
  endif()
  fasthorovod_report("${name}" TRUE "${version}" "${enables}")
endfunction()

# Wraps a library under alias_name; its static archive is preferred where there is one, because a wheel should not
# need a package of the distribution at run time, and symbols of an archive can be kept out of the extension's table.
function(fasthorovod_wrap alias_name archive fallback)
  add_library(fasthorovod_dep_${alias_name} INTERFACE)
  add_library(fasthorovod::${alias_name} ALIAS fasthorovod_dep_${alias_name})
  find_library(FASTHOROVOD_ARCHIVE_${alias_name} NAMES ${archive})
  mark_as_advanced(FASTHOROVOD_ARCHIVE_${alias_name})
  if(FASTHOROVOD_ARCHIVE_${alias_name})
    target_link_libraries(fasthorovod_dep_${alias_name} INTERFACE ${FASTHOROVOD_ARCHIVE_${alias_name}} ${ARGN})
  else()
    target_link_libraries(fasthorovod_dep_${alias_name} INTERFACE ${fallback})
  endif()
endfunction()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads QUIET)
fasthorovod_require("Threads" "${Threads_FOUND}" "" "libc6-dev" "everything")

find_package(fmt QUIET)
fasthorovod_require("fmt" "${fmt_FOUND}" "${fmt_VERSION}" "libfmt-dev" "messages")
fasthorovod_wrap(fmt libfmt.a fmt::fmt)

find_package(Boost 1.81 QUIET)
fasthorovod_require("Boost >= 1.81" "${Boost_FOUND}" "${Boost_VERSION_STRING}" "libboost1.81-dev"
                    "sockets of rendezvous and handshake (Asio)")
add_library(fasthorovod_dep_asio INTERFACE)
add_library(fasthorovod::asio ALIAS fasthorovod_dep_asio)
target_link_libraries(fasthorovod_dep_asio INTERFACE Boost::headers Threads::Threads)
# ThreadSanitizer does not model fences; an io_context of ours is run by one thread and fed under its mutex, so Asio's
# fence round each handler orders nothing that the mutex does not.
target_compile_definitions(
  fasthorovod_dep_asio INTERFACE BOOST_ASIO_NO_DEPRECATED
                                 $<$<STREQUAL:${FASTHOROVOD_SANITIZE},thread>:BOOST_ASIO_DISABLE_FENCED_BLOCK>)

find_package(OpenSSL 1.1 QUIET COMPONENTS Crypto)
fasthorovod_require("OpenSSL" "${OPENSSL_FOUND}" "${OPENSSL_VERSION}" "libssl-dev"
                    "HMAC of every connection")
fasthorovod_wrap(crypto libcrypto.a OpenSSL::Crypto ${CMAKE_DL_LIBS} Threads::Threads)

find_package(hwy QUIET CONFIG)
fasthorovod_require("Highway" "${hwy_FOUND}" "${hwy_VERSION}" "libhwy-dev" "vector kernels")
fasthorovod_wrap(hwy libhwy.a hwy::hwy)

find_package(CLI11 QUIET CONFIG)
fasthorovod_require("CLI11" "${CLI11_FOUND}" "${CLI11_VERSION}" "libcli11-dev" "command lines of the programs")

find_package(nlohmann_json QUIET CONFIG)
fasthorovod_require("nlohmann-json" "${nlohmann_json_FOUND}" "${nlohmann_json_VERSION}" "nlohmann-json3-dev"
                    "reports and traces")

if(BUILD_TESTING)
  find_package(GTest QUIET CONFIG)
  fasthorovod_require("GoogleTest" "${GTest_FOUND}" "${GTest_VERSION}" "libgtest-dev libgmock-dev" "tests")
endif()
if(FASTHOROVOD_BUILD_BENCH)
  find_package(benchmark QUIET CONFIG)
  fasthorovod_require("benchmark" "${benchmark_FOUND}" "${benchmark_VERSION}" "libbenchmark-dev" "benches")
endif()
