#include "core/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string_view>

#include "core/known_tensor.h"

namespace fasthorovod::core {

namespace {

// NaN is a scale like any other here: two ranks that pass it agree.
bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool same_shape(const Request& a, const Request& b) {
  if (a.shape.size() != b.shape.size()) return false;
  const bool own_rows = a.op == OpKind::kAllgather && b.op == OpKind::kAllgather;
  const std::ptrdiff_t skipped = own_rows && !a.shape.empty() ? 1 : 0;
  return std::equal(a.shape.begin() + skipped, a.shape.end(), b.shape.begin() + skipped);
}

// One thing ranks must agree about: what it is called, when it is the same, how each rank's is
// told.
struct Aspect {
  std::string_view what;
  bool (*same)(const Request& a, const Request& b);
  std::string (*tell)(const Request& request);
};

// The order in which differences are told: the first that differs is the one that explains the
// rest.
constexpr std::array<Aspect, 10> kAspects{{
    {"the operation", [](const Request& a, const Request& b) { return a.op == b.op; },
     [](const Request& r) { return std::string(to_string(r.op)); }},
    {"the ranks", [](const Request& a, const Request& b) { return a.members == b.members; },
     [](const Request& r) { return fmt::format("[{}]", fmt::join(r.members, ", ")); }},
    {"the type", [](const Request& a, const Request& b) { return a.type == b.type; },
     describe_type_and_shape},
    {"the shape", same_shape, describe_type_and_shape},
    {"the reduction", [](const Request& a, const Request& b) { return a.reduction == b.reduction; },
     [](const Request& r) { return std::string(to_string(r.reduction)); }},
    {"the root rank", [](const Request& a, const Request& b) { return a.root == b.root; },
     [](const Request& r) { return fmt::format("root {}", r.root); }},
    {"prescale",
     [](const Request& a, const Request& b) { return same_number(a.prescale, b.prescale); },
     [](const Request& r) { return fmt::format("{}", r.prescale); }},
    {"postscale",
     [](const Request& a, const Request& b) { return same_number(a.postscale, b.postscale); },
     [](const Request& r) { return fmt::format("{}", r.postscale); }},
    {"the codec", [](const Request& a, const Request& b) { return a.codec == b.codec; },
     [](const Request& r) { return to_string(r.codec); }},
    {"the bundle",
     [](const Request& a, const Request& b) {
       return a.bundle == b.bundle && a.bundle_size == b.bundle_size;
     },
     [](const Request& r) {
       return r.bundle.empty() ? std::string("alone")
                               : fmt::format("\"{}\" of {}", r.bundle, r.bundle_size);
     }},
}};

const Aspect* first_difference(const KnownTensor& tensor) {
  const auto& variants = tensor.variants();
  for (const Aspect& aspect : kAspects) {
    for (const SharedRequest& variant : variants) {
      if (!aspect.same(*variants.front(), *variant)) return &aspect;
    }
  }
  return nullptr;
}

// Ranks that say the same are named together, the group of the lowest rank first.
std::string who_has_what(const KnownTensor& tensor, const Aspect& aspect) {
  std::map<std::string, std::vector<int>> ranks_of_text;
  for (std::size_t i = 0; i < tensor.variants().size(); ++i) {
    std::vector<int>& ranks = ranks_of_text[aspect.tell(*tensor.variants()[i])];
    for (const int rank : tensor.ranks_of(i)) ranks.push_back(rank);
    std::sort(ranks.begin(), ranks.end());
  }
  std::map<std::vector<int>, std::string> in_order;
  for (const auto& [text, ranks] : ranks_of_text) in_order[ranks] = text;
  std::string sentence;
  for (const auto& [ranks, text] : in_order) {
    sentence += fmt::format("{}{}: {}", sentence.empty() ? "" : "; ", describe_ranks(ranks), text);
  }
  return sentence;
}

std::optional<Error> mismatch(const KnownTensor& tensor) {
  if (tensor.variants().size() < 2) return std::nullopt;
  const Aspect* aspect = first_difference(tensor);
  if (aspect == nullptr) return std::nullopt;
  return Error{ErrorCode::kMismatch,
               fmt::format("tensor \"{}\": ranks disagree about {}: {}", tensor.label(),
                           aspect->what, who_has_what(tensor, *aspect))};
}

std::optional<Error> missing_joined(const KnownTensor& tensor, const Membership& membership) {
  if (tensor.lowest_request()->op == OpKind::kAllreduce) return std::nullopt;
  std::vector<int> joined;
  for (const int rank : tensor.group().ranks) {
    if (membership.has_joined(rank) && !tensor.has_submitted(rank)) joined.push_back(rank);
  }
  if (joined.empty()) return std::nullopt;
  return Error{
      ErrorCode::kMismatch,
      fmt::format("tensor \"{}\": {} joined; until every rank has, only all-reduces run, "
                  "no {}",
                  tensor.label(), describe_ranks(joined), to_string(tensor.lowest_request()->op))};
}

// What all ranks agree on and still cannot be done.
std::optional<std::string> impossible(const KnownTensor& tensor) {
  const Request& request = *tensor.lowest_request();
  const KnownGroup& group = tensor.group();
  if (request.op == OpKind::kBroadcast && !group.includes(request.root)) {
    return fmt::format("root {} is not one of: {}", request.root, describe_ranks(group.ranks));
  }
  if (request.op != OpKind::kAllgather) return std::nullopt;
  if (request.shape.empty()) return "an all-gather needs at least one dimension";
  std::vector<std::int64_t> total = request.shape;
  total.front() = 0;
  for (const std::int64_t rows : tensor.first_dimensions()) {
    // Each is at most 2^48; stopping there keeps the sum from overflowing.
    if (static_cast<std::uint64_t>(total.front()) <= kMaxElements) total.front() += rows;
  }
  if (!is_valid_shape(total)) return "the gathered tensor would be too large";
  return std::nullopt;
}

}  // namespace

bool agree(const Request& a, const Request& b) {
  return std::all_of(kAspects.begin(), kAspects.end(),
                     [&](const Aspect& aspect) { return aspect.same(a, b); });
}

std::optional<Error> verdict(const KnownTensor& tensor, const Membership& membership) {
  if (auto error = mismatch(tensor)) return error;
  if (auto error = missing_joined(tensor, membership)) return error;
  if (const auto reason = impossible(tensor)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("tensor \"{}\": {}", tensor.label(), *reason)};
  }
  return std::nullopt;
}

std::string describe_ranks(const std::vector<int>& ranks) {
  std::string text = "rank ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    const bool is_run = end - i > 2;
    if (i > 0) text += ", ";
    text +=
        is_run ? fmt::format("{} to {}", ranks[i], ranks[end - 1]) : fmt::format("{}", ranks[i]);
    i = is_run ? end : i + 1;
  }
  return text;
}

std::string describe_type_and_shape(const Request& request) {
  const bool own_rows = request.op == OpKind::kAllgather && !request.shape.empty();
  std::string dimensions = own_rows ? "*" : "";
  for (std::size_t i = own_rows ? 1 : 0; i < request.shape.size(); ++i) {
    dimensions += fmt::format("{}{}", i == 0 ? "" : ", ", request.shape[i]);
  }
  return fmt::format("{} [{}]", to_string(request.type), dimensions);
}

}  // namespace fasthorovod::core
