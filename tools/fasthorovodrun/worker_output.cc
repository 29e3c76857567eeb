#include "tools/fasthorovodrun/worker_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace fasthorovod::tools {

WorkerOutput::WorkerOutput(transport::FileDescriptor pipe, std::string prefix,
                           transport::FileDescriptor copy, Sink& sink)
    : pipe_(std::move(pipe)), splitter_(std::move(prefix)), copy_(std::move(copy)), sink_(sink) {}

bool WorkerOutput::read_some() {
  static thread_local std::array<char, 64U << 10U> bytes;
  const ssize_t got = read(pipe_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    finish();
    return false;
  }
  const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
  write_copy(text);
  splitter_.push(text, sink_.buffer());
  return true;
}

void WorkerOutput::finish() {
  splitter_.finish(sink_.buffer());
  pipe_ = transport::FileDescriptor();
}

std::optional<core::Error> WorkerOutput::take_copy_error() {
  return std::exchange(copy_error_, std::nullopt);
}

void WorkerOutput::write_copy(std::string_view bytes) {
  while (copy_.valid() && !bytes.empty()) {
    const ssize_t put = write(copy_.get(), bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      copy_error_ = core::system_error("cannot write an output file any more", errno);
      copy_ = transport::FileDescriptor();
    }
  }
}

core::Result<CopyFiles> make_copy_files(const std::string& directory, int rank, int size) {
  const std::size_t width = std::to_string(size - 1).size();
  const std::string folder = fmt::format("{}/rank.{:0{}}", directory, rank, width);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return core::system_error(fmt::format("cannot make '{}'", folder), error.value());
  CopyFiles files;
  for (auto [name, file] :
       {std::pair{"stdout", &files.standard_output}, std::pair{"stderr", &files.standard_error}}) {
    const std::string path = fmt::format("{}/{}", folder, name);
    constexpr int kMode = 0666;
    *file = transport::FileDescriptor(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
    if (!file->valid()) return core::system_error(fmt::format("cannot write '{}'", path), errno);
  }
  return files;
}

}  // namespace fasthorovod::tools
