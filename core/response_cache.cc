#include "core/response_cache.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace fasthorovod::core {

namespace {

constexpr std::uint32_t kBitsPerWord = 64;

Error disagreement(std::uint32_t position, std::string_view what) {
  return {ErrorCode::kProtocol, fmt::format("response cache: position {} {}", position, what)};
}

}  // namespace

std::optional<std::uint32_t> ResponseCache::find(const Request& request) const {
  const auto group = positions_.find(request.group);
  if (group == positions_.end()) return std::nullopt;
  const auto found = group->second.find(request.name);
  if (found == group->second.end()) return std::nullopt;
  const Request* stored = at(found->second);
  if (stored == nullptr || *stored != request) return std::nullopt;
  return found->second;
}

const Request* ResponseCache::at(std::uint32_t position) const {
  if (position >= entries_.size() || !entries_[position]) return nullptr;
  return &entries_[position]->request;
}

void ResponseCache::erase(std::uint32_t position) {
  if (at(position) == nullptr) return;
  // The name may sit at another position by now: a tensor whose parameters changed moves.
  const Request& request = entries_[position]->request;
  Positions& positions = positions_[request.group];
  const auto found = positions.find(request.name);
  if (found != positions.end() && found->second == position) positions.erase(found);
  if (positions.empty()) positions_.erase(request.group);
  entries_[position].reset();
}

Status ResponseCache::insert(const CacheChange& change, int rank) {
  if (change.position >= kMaxCachePositions) return disagreement(change.position, "is too far out");
  const auto own = static_cast<std::size_t>(rank);
  const bool gathers = change.request.op == OpKind::kAllgather;
  if (gathers && (change.request.shape.empty() || own >= change.first_dimensions.size())) {
    return disagreement(change.position, "brings an all-gather without this rank's dimension");
  }
  erase(change.position);
  if (change.position >= entries_.size()) entries_.resize(change.position + 1);
  const Request& request = change.request;
  Entry entry{request, {request.name, request.shape, change.first_dimensions, change.position}};
  if (gathers) entry.request.shape.front() = change.first_dimensions[own];
  positions_[request.group][request.name] = change.position;
  entries_[change.position] = std::move(entry);
  return {};
}

std::size_t ResponseCache::size() const {
  std::size_t names = 0;
  for (const auto& [group, positions] : positions_) names += positions.size();
  return names;
}

Status ResponseCache::apply(Plan& plan, int rank) {
  for (const CacheChange& change : plan.cache_changes) {
    if (!change.insert) {
      erase(change.position);
    } else if (auto status = insert(change, rank); !status) {
      return status;
    }
  }
  for (PlanItem& item : plan.items) {
    for (PlanTensor& tensor : item.tensors) {
      if (!tensor.cache_position) continue;
      const std::uint32_t position = *tensor.cache_position;
      if (at(position) == nullptr) return disagreement(position, "of a plan holds nothing");
      tensor = entries_[position]->tensor;
    }
  }
  return {};
}

void set_bit(std::vector<std::uint64_t>& bits, std::uint32_t position) {
  const std::size_t word = position / kBitsPerWord;
  if (word >= bits.size()) bits.resize(word + 1);
  bits[word] |= std::uint64_t{1} << (position % kBitsPerWord);
}

}  // namespace fasthorovod::core
