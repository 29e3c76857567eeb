#include "core/control_message.h"

#include <gtest/gtest.h>

#include <random>

#include "core/response_cache.h"
#include "core/wire.h"

namespace fasthorovod::core {
namespace {

using Bytes = std::vector<std::byte>;

Request full_request() {
  Request request;
  request.name = "layer.weight";
  request.group = 7;
  request.op = OpKind::kBroadcast;
  request.type = DataType::kBfloat16;
  request.reduction = Reduction::kProduct;
  request.root = 3;
  request.prescale = 0.5;
  request.postscale = -2;
  request.codec = {CodecId::kTwobit, 0.25F};
  request.shape = {3, 0, 400};
  request.bundle = "both";
  request.bundle_size = 2;
  request.members = {0, 2, 300};
  return request;
}

Submissions full_submissions() {
  Submissions submissions;
  submissions.plans_applied = 300;
  submissions.cached = {5, 0, ~std::uint64_t{0}};
  submissions.requests = {full_request(), Request{}};
  submissions.joined = true;
  return submissions;
}

Plan full_plan() {
  Plan plan;
  plan.number = 1234567;
  plan.cache_changes = {{4, false}, {900, true, full_request(), {1, 2, 3}}};
  PlanItem item;
  item.group = 2;
  item.sequence = 99;
  item.op = OpKind::kAllgather;
  item.type = DataType::kInt8;
  item.reduction = Reduction::kMin;
  item.root = 1;
  item.prescale = 3;
  item.postscale = 0.25;
  item.codec = {CodecId::kTwobit, 0.75F};
  item.tensors = {{"a", {2, 3}, {2, 4}, {}}, {"", {}, {}, 900}, {"", {}, {}, 4}, {"", {}, {}, 5}};
  item.error = Error{ErrorCode::kMismatch, "they disagree", 4};
  item.last_joined = 6;
  item.members = {1, 5};
  plan.items = {item, PlanItem{}};
  return plan;
}

std::vector<ControlMessage> all_kinds() {
  return {full_submissions(),
          full_plan(),
          FaultReport{{ErrorCode::kPeerLost, "rank 2 is gone", 2}},
          Abort{{ErrorCode::kStalled, "", -1}},
          Goodbye{300, 2},
          RollCall{},
          Present{},
          OperationFailed{7, 300, {0, 2, 5}, {ErrorCode::kMismatch, "they disagree", -1}},
          Meet{3, 1},
          Departed{4},
          Submissions{},
          Plan{}};
}

void expect_equal(const Error& a, const Error& b) {
  EXPECT_EQ(a.code, b.code);
  EXPECT_EQ(a.message, b.message);
  EXPECT_EQ(a.culprit, b.culprit);
}

Result<ControlMessage> round_trip(const ControlMessage& message) { return decode(encode(message)); }

TEST(ControlMessage, KeepsSubmissions) {
  const Submissions sent = full_submissions();
  const auto message = round_trip(sent);
  ASSERT_TRUE(message.has_value()) << message.error().message;
  const auto& got = std::get<Submissions>(*message);
  EXPECT_EQ(got.plans_applied, sent.plans_applied);
  EXPECT_EQ(got.cached, sent.cached);
  EXPECT_EQ(got.requests, sent.requests);
  EXPECT_EQ(got.joined, sent.joined);
}

TEST(ControlMessage, KeepsPlans) {
  const Plan sent = full_plan();
  const auto message = round_trip(sent);
  ASSERT_TRUE(message.has_value()) << message.error().message;
  const auto& got = std::get<Plan>(*message);
  EXPECT_EQ(got.number, sent.number);
  EXPECT_EQ(got.cache_changes, sent.cache_changes);
  ASSERT_EQ(got.items.size(), sent.items.size());
  for (std::size_t i = 0; i < got.items.size(); ++i) {
    const PlanItem& a = got.items[i];
    const PlanItem& b = sent.items[i];
    EXPECT_EQ(std::tie(a.group, a.sequence, a.op, a.type, a.reduction, a.root, a.codec),
              std::tie(b.group, b.sequence, b.op, b.type, b.reduction, b.root, b.codec));
    EXPECT_EQ(std::tie(a.prescale, a.postscale, a.last_joined, a.members),
              std::tie(b.prescale, b.postscale, b.last_joined, b.members));
    EXPECT_EQ(a.tensors, b.tensors);
    ASSERT_EQ(a.error.has_value(), b.error.has_value());
    if (a.error) expect_equal(*a.error, *b.error);
  }
}

TEST(ControlMessage, KeepsFaultsVerdictsAndGoodbyes) {
  const Error error{ErrorCode::kPeerLost, "rank 2 is gone", 2};
  const auto report = round_trip(FaultReport{error});
  ASSERT_TRUE(report.has_value());
  expect_equal(std::get<FaultReport>(*report).error, error);
  const auto abort = round_trip(Abort{error});
  ASSERT_TRUE(abort.has_value());
  expect_equal(std::get<Abort>(*abort).error, error);
  const auto goodbye = round_trip(Goodbye{300, 2});
  ASSERT_TRUE(goodbye.has_value());
  ASSERT_TRUE(std::holds_alternative<Goodbye>(*goodbye));
  EXPECT_EQ(std::get<Goodbye>(*goodbye).plans_applied, 300U);
  EXPECT_EQ(std::get<Goodbye>(*goodbye).first_left, 2);
}

TEST(ControlMessage, KeepsFailedOperationsMeetingsAndDepartures) {
  const OperationFailed sent{7, 300, {0, 2, 5}, {ErrorCode::kMismatch, "they disagree", 2}, true};
  const auto failed = round_trip(sent);
  ASSERT_TRUE(failed.has_value());
  const auto& got = std::get<OperationFailed>(*failed);
  EXPECT_EQ(got.group, sent.group);
  EXPECT_EQ(got.sequence, sent.sequence);
  EXPECT_EQ(got.members, sent.members);
  expect_equal(got.error, sent.error);
  EXPECT_EQ(got.ends_group, sent.ends_group);
  const auto meet = round_trip(Meet{3, 1});
  ASSERT_TRUE(meet.has_value());
  EXPECT_EQ(std::get<Meet>(*meet).from, 3);
  EXPECT_EQ(std::get<Meet>(*meet).to, 1);
  const auto departed = round_trip(Departed{4});
  ASSERT_TRUE(departed.has_value());
  EXPECT_EQ(std::get<Departed>(*departed).rank, 4);
}

TEST(ControlMessage, SendsACachedTensorAsItsPositionAlone) {
  Plan plan;
  plan.items.emplace_back();
  plan.items[0].tensors = {{"long name that stays here", {3, 4}, {}, 17}};
  const auto message = round_trip(plan);
  ASSERT_TRUE(message.has_value());
  const PlanTensor expected{"", {}, {}, 17};
  EXPECT_EQ(std::get<Plan>(*message).items[0].tensors[0], expected);
}

TEST(ControlMessage, CostsAByteATensorInTheSteadyState) {
  Plan plan;
  plan.items.emplace_back();
  for (std::uint32_t i = 0; i < 10000; ++i) {
    plan.items[0].tensors.push_back({"", {}, {}, i});
  }
  EXPECT_LT(encode(plan).size(), 10100u);
}

TEST(ControlMessage, RefusesEveryTruncationAndNamesTheField) {
  for (const ControlMessage& message : all_kinds()) {
    const Bytes bytes = encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const auto result = decode(std::span(bytes).first(length));
      ASSERT_FALSE(result.has_value()) << message.index() << " at " << length;
      EXPECT_EQ(result.error().code, ErrorCode::kProtocol);
      EXPECT_NE(result.error().message.find(": bad "), std::string::npos);
    }
  }
  const auto result = decode({});
  EXPECT_EQ(result.error().message, "control message of 0 bytes: bad message kind");
}

TEST(ControlMessage, RefusesBytesAfterTheEnd) {
  for (const ControlMessage& message : all_kinds()) {
    Bytes bytes = encode(message);
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(decode(bytes).has_value()) << message.index();
  }
}

// Whatever single byte is changed: decoding ends, and what it accepts can be encoded again.
TEST(ControlMessage, SurvivesEveryChangedByte) {
  for (const ControlMessage& message : all_kinds()) {
    const Bytes bytes = encode(message);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (unsigned value = 0; value < 256; ++value) {
        Bytes changed = bytes;
        changed[at] = std::byte(value);
        const auto result = decode(changed);
        if (result) {
          EXPECT_TRUE(round_trip(*result).has_value());
        }
      }
    }
  }
}

TEST(ControlMessage, SurvivesGarbage) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes(random() % 200);
    for (std::byte& byte : bytes) byte = std::byte(random() & 0xFFu);
    if (!bytes.empty()) bytes[0] = std::byte(random() % 10);
    const auto result = decode(bytes);
    if (!result) {
      EXPECT_EQ(result.error().code, ErrorCode::kProtocol);
    }
  }
}

// The bytes of a message, then a count of nearly 2^64 of which nothing follows.
Bytes with_count(std::initializer_list<std::uint8_t> before) {
  WireWriter writer;
  for (const std::uint8_t byte : before) writer.u8(byte);
  writer.varint(~std::uint64_t{0} - 1);
  return std::move(writer).take();
}

TEST(ControlMessage, RefusesCountsThatTheMessageCannotHold) {
  const std::vector<Bytes> messages{with_count({0, 0, 0}), with_count({0, 0, 0, 0}),
                                    with_count({1, 0}), with_count({1, 0, 0}), with_count({2, 0})};
  for (const Bytes& bytes : messages) EXPECT_FALSE(decode(bytes).has_value());
}

std::string refusal(const ControlMessage& message) {
  const auto result = round_trip(message);
  if (result) return "(accepted)";
  const std::string& text = result.error().message;
  return text.substr(text.find("bad "));
}

TEST(ControlMessage, RefusesBadEnumeratorsAndValues) {
  const auto with = [](auto change) {
    Submissions submissions;
    submissions.requests.emplace_back();
    change(submissions.requests[0]);
    return submissions;
  };
  EXPECT_EQ(refusal(with([](Request& r) { r.op = OpKind{7}; })), "bad operation");
  EXPECT_EQ(refusal(with([](Request& r) { r.type = DataType{13}; })), "bad type");
  EXPECT_EQ(refusal(with([](Request& r) { r.reduction = Reduction{2}; })), "bad reduction");
  EXPECT_EQ(refusal(with([](Request& r) { r.root = -2; })), "bad root");
  EXPECT_EQ(refusal(with([](Request& r) { r.members = {2, 1}; })), "bad members");
  EXPECT_EQ(refusal(with([](Request& r) { r.shape = {-1}; })), "bad shape");
  EXPECT_EQ(refusal(with([](Request& r) { r.shape.assign(65, 1); })), "bad shape");
  EXPECT_EQ(refusal(with([](Request& r) { r.shape.assign(3, 1 << 20); })), "bad shape");
  EXPECT_EQ(refusal(Abort{{ErrorCode{77}, "", -1}}), "bad error code");
  EXPECT_EQ(refusal(Abort{{ErrorCode::kSystem, "", -2}}), "bad culprit");
  Submissions bits;
  bits.cached.resize(kMaxCachePositions / 64 + 1);
  EXPECT_EQ(refusal(bits), "bad cached bits");
  Plan plan;
  plan.cache_changes = {{kMaxCachePositions, false}};
  EXPECT_EQ(refusal(plan), "bad cache position");
  plan = {};
  plan.items.emplace_back();
  plan.items[0].tensors = {{"", {}, {}, kMaxCachePositions}};
  EXPECT_EQ(refusal(plan), "bad tensor");
}

}  // namespace
}  // namespace fasthorovod::core
