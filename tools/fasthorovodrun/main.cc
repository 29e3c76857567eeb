// fasthorovodrun: starts the ranks of a job, passes on what they print, and leaves nothing behind.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "core/build_id.h"
#include "tools/fasthorovodrun/build_report.h"
#include "tools/fasthorovodrun/command.h"
#include "tools/fasthorovodrun/launch.h"
#include "tools/fasthorovodrun/options.h"

namespace fasthorovod::tools {
namespace {

constexpr int kBadOptions = 2;
constexpr int kCannotStart = 1;

/// A closed standard descriptor would be reused for something that others take for the output.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", O_RDWR);
  }
}

int refuse(int code, std::string_view sentence) {
  (void)std::fputs(fmt::format("fasthorovodrun: {}\n", sentence).c_str(), stderr);
  return code;
}

int print(const std::string& text) {
  (void)std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : kCannotStart;
}

std::string own_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::vector<std::string> inherited_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

int run(const std::vector<std::string>& arguments) {
  const core::Result<Options> options = parse_options(arguments);
  if (!options) return refuse(kBadOptions, options.error().message);
  if (options->help) return print(help_text());
  if (options->version) return print(fmt::format("{}\n", core::version()));
  if (options->check_build) return print(build_report());

  const core::Result<std::vector<Place>> places = plan_places(*options, own_name());
  if (!places) return refuse(kBadOptions, places.error().message);
  const char* path = std::getenv("PATH");
  const auto refusal =
      check_command(options->command.front(), path == nullptr ? "/bin:/usr/bin" : path);
  if (refusal) return refuse(refusal->exit_code, refusal->sentence);
  const core::Result<int> code = launch(*options, *places, inherited_environment());
  return code ? *code : refuse(kCannotStart, code.error().message);
}

}  // namespace
}  // namespace fasthorovod::tools

int main(int argc, char** argv) {
  fasthorovod::tools::open_standard_descriptors();
  return fasthorovod::tools::run(std::vector<std::string>(argv + 1, argv + argc));
}
