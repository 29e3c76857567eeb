#include "tools/fasthorovod-bench/choices.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fasthorovod::tools {
namespace {

template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

constexpr Choice<core::Reduction> kReductions[] = {{"sum", core::Reduction::kSum},
                                                   {"prod", core::Reduction::kProduct},
                                                   {"min", core::Reduction::kMin},
                                                   {"max", core::Reduction::kMax},
                                                   {"avg", core::Reduction::kAverage}};
constexpr Choice<BenchDoor> kDoors[] = {{"ordered", BenchDoor::kOrdered},
                                        {"named", BenchDoor::kNamed}};
constexpr Choice<BenchMemory> kMemories[] = {{"ordinary", BenchMemory::kOrdinary},
                                             {"arena", BenchMemory::kArena}};

std::vector<Choice<core::DataType>> types() {
  std::vector<Choice<core::DataType>> all;
  for (int number = 0; number < core::kDataTypeCount; ++number) {
    const auto type = core::data_type_from_wire(static_cast<std::uint8_t>(number));
    all.push_back({core::to_string(*type), *type});
  }
  all.push_back({"half", core::DataType::kFloat16});
  all.push_back({"float", core::DataType::kFloat32});
  all.push_back({"double", core::DataType::kFloat64});
  return all;
}

template <typename T>
core::Result<T> choose(std::string_view option, std::string_view text,
                       std::span<const Choice<T>> choices) {
  std::string allowed;
  for (const Choice<T>& choice : choices) {
    if (choice.name == text) return choice.value;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", choice.name);
  }
  return core::Error{core::ErrorCode::kInvalidArgument,
                     fmt::format("{}: '{}' is none of {}", option, text, allowed)};
}

template <typename T>
std::string_view name_in(std::span<const Choice<T>> choices, T value) {
  for (const Choice<T>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "?";
}

}  // namespace

core::Result<core::DataType> parse_type(std::string_view text) {
  const std::vector<Choice<core::DataType>> all = types();
  return choose<core::DataType>("--datatype", text, all);
}

core::Result<core::Reduction> parse_reduction(std::string_view text) {
  return choose<core::Reduction>("--op", text, kReductions);
}

std::string_view reduction_name(core::Reduction reduction) {
  return name_in<core::Reduction>(kReductions, reduction);
}

core::Result<BenchDoor> parse_door(std::string_view text) {
  return choose<BenchDoor>("--door", text, kDoors);
}

std::string_view door_name(BenchDoor door) { return name_in<BenchDoor>(kDoors, door); }

core::Result<BenchMemory> parse_memory(std::string_view text) {
  return choose<BenchMemory>("--memory", text, kMemories);
}

std::string_view memory_name(BenchMemory memory) { return name_in<BenchMemory>(kMemories, memory); }

}  // namespace fasthorovod::tools
