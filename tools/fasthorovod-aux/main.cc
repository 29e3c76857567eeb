// fasthorovod-aux: the program of auxiliary processes. A rank starts it; it carries chunks for that
// rank and reduces what comes.
#include <fcntl.h>
#include <signal.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "compression/instruction_set.h"
#include "core/build_id.h"
#include "ops/how_to_add.h"
#include "transport/aux_worker.h"

namespace {

using fasthorovod::transport::FileDescriptor;
using fasthorovod::transport::kAuxOption;
using fasthorovod::transport::kAuxSocket;

int print(std::string_view line) {
  return std::printf("%.*s\n", static_cast<int>(line.size()), line.data()) > 0 ? 0 : 1;
}

int serve() {
  // Whether to stop is the rank's decision: Ctrl-C reaches the whole group of processes.
  for (const int signal : std::array{SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    ::signal(signal, SIG_IGN);
  }
  ::fcntl(kAuxSocket, F_SETFD, FD_CLOEXEC);
  // The rank has refused a name that means nothing.
  const char* const simd = std::getenv("FASTHOROVOD_SIMD");
  if (simd != nullptr) (void)fasthorovod::compression::use_instruction_set(simd);
  return fasthorovod::transport::run_auxiliary(
      FileDescriptor(kAuxSocket),
      [](std::span<std::byte> to, std::span<const std::byte> piece, std::uint16_t how) {
        return fasthorovod::ops::add_as(how, to, piece);
      });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view option = argc == 2 ? argv[1] : "";
  if (option == "--version") return print(fasthorovod::core::version());
  if (option == "--build-id") return print(fasthorovod::core::build_id());
  if (option == kAuxOption) return serve();
  (void)std::fputs(
      "fasthorovod-aux: ranks start this program by themselves when FASTHOROVOD_AUX asks for "
      "auxiliaries; by hand it only takes --version and --build-id\n",
      stderr);
  return 2;
}
