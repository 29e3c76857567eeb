#include "tools/fasthorovodrun/line_splitter.h"

namespace fasthorovod::tools {
namespace {

/// Where to cut `text` so that at most `limit` bytes come first and no UTF-8 character is split.
std::size_t cut_before(std::string_view text, std::size_t limit) {
  constexpr std::size_t kLongestTail = 3;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  std::size_t cut = limit;
  while (cut > 1 && limit - cut < kLongestTail && continues(cut)) --cut;
  return continues(cut) ? limit : cut;
}

}  // namespace

LineSplitter::LineSplitter(std::string prefix, std::size_t longest_line)
    : prefix_(std::move(prefix)), longest_line_(longest_line) {}

void LineSplitter::push(std::string_view bytes, std::string& out) {
  if (bytes.empty()) return;
  if (after_return_ && bytes.front() == '\n') {
    out += '\n';  // the second half of an end that came in two reads
    bytes.remove_prefix(1);
  }
  after_return_ = false;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    add_text(bytes.substr(0, end), out);
    if (end == std::string_view::npos) return;
    const bool both = bytes.substr(end).starts_with("\r\n");
    after_return_ = bytes[end] == '\r' && end + 1 == bytes.size();
    emit(partial_, bytes.substr(end, both ? 2 : 1), out);
    partial_.clear();
    bytes.remove_prefix(end + (both ? 2 : 1));
  }
}

void LineSplitter::finish(std::string& out) {
  if (!partial_.empty()) emit(partial_, "\n", out);
  partial_.clear();
}

void LineSplitter::add_text(std::string_view text, std::string& out) {
  partial_ += text;
  std::string_view rest = partial_;
  while (rest.size() > longest_line_) {
    const std::size_t cut = cut_before(rest, longest_line_);
    emit(rest.substr(0, cut), "\n", out);
    rest.remove_prefix(cut);
  }
  partial_.erase(0, partial_.size() - rest.size());
}

void LineSplitter::emit(std::string_view text, std::string_view end, std::string& out) const {
  out.append(prefix_).append(text).append(end);
}

}  // namespace fasthorovod::tools
