// Cuts one stream of output into lines and puts a prefix before each. Pure; Thread: owner.
//
// A line ends with a line feed, with a carriage return (progress bars), or with both in this order;
// its end is kept as it is. A line longer than the limit is passed on in pieces, each a line of its
// own, cut between characters and never inside one. Bytes that are no text pass through unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fasthorovod::tools {

class LineSplitter final {
 public:
  static constexpr std::size_t kLongestLine = 64U << 10U;

  explicit LineSplitter(std::string prefix, std::size_t longest_line = kLongestLine);

  /// Appends the lines that `bytes` complete to `out`. Keeps the rest, at most the longest line.
  void push(std::string_view bytes, std::string& out);
  /// The stream is over: appends what was kept, with the line feed it lacks.
  void finish(std::string& out);

 private:
  void add_text(std::string_view text, std::string& out);
  void emit(std::string_view text, std::string_view end, std::string& out) const;

  std::string prefix_;
  std::size_t longest_line_;
  std::string partial_;
  bool after_return_ =
      false;  // the last line ended with a carriage return that was the last byte we had
};

}  // namespace fasthorovod::tools
