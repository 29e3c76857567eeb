// One stream of one worker: reads its pipe, cuts it into lines for a sink, and keeps a raw copy in
// a file if asked to. Thread: owner.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"
#include "tools/fasthorovodrun/line_splitter.h"
#include "tools/fasthorovodrun/sink.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::tools {

class WorkerOutput final {
 public:
  /// `pipe` is the reading end, not blocking; `copy` may be invalid; `sink` must outlive this.
  WorkerOutput(transport::FileDescriptor pipe, std::string prefix, transport::FileDescriptor copy,
               Sink& sink);

  /// Reads once, up to 64 KiB. False when nothing was there or the stream is over.
  bool read_some();
  /// Gives up on what may still come and passes on the last, unfinished line.
  void finish();

  [[nodiscard]] bool open() const { return pipe_.valid(); }
  [[nodiscard]] int fd() const { return pipe_.get(); }
  [[nodiscard]] Sink& sink() const { return sink_; }
  /// Why the file stopped growing, told once.
  std::optional<core::Error> take_copy_error();

 private:
  void write_copy(std::string_view bytes);

  transport::FileDescriptor pipe_;
  LineSplitter splitter_;
  transport::FileDescriptor copy_;
  std::optional<core::Error> copy_error_;
  Sink& sink_;
};

/// The two files of a rank.
struct CopyFiles {
  transport::FileDescriptor standard_output;
  transport::FileDescriptor standard_error;
};

/// Makes <directory>/rank.<rank>/stdout and stderr, emptying old ones. Ranks are padded with zeros
/// to equal length.
core::Result<CopyFiles> make_copy_files(const std::string& directory, int rank, int size);

}  // namespace fasthorovod::tools
