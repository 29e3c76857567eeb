#include "transport/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace fasthorovod::transport {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Nonce nonce_of(unsigned char value) {
  Nonce nonce;
  nonce.fill(std::byte{value});
  return nonce;
}

// Both sides of one handshake, and what one sent the other.
class Handshake : public ::testing::Test {
 protected:
  void SetUp() override { job_.fill(std::byte{7}); }

  [[nodiscard]] Claim claim() const {
    return {.job = job_,
            .epoch = 5,
            .purpose = Purpose::kFlow,
            .dialling_rank = 2,
            .dialled_rank = 3,
            .flow = 1};
  }
  [[nodiscard]] AnsweringHandshake::Self self() const {
    return {.job = job_, .epoch = 5, .rank = 3};
  }

  static Verdict feed(AnsweringHandshake& answerer, std::span<const std::byte> frame) {
    const auto whole = frame.first<kClaimBytes>();
    const Verdict prefix = answerer.take_prefix(whole.first<kPrefixBytes>());
    return prefix == Verdict::kWelcome ? answerer.take_claim(whole.subspan<kPrefixBytes>())
                                       : prefix;
  }
  static Verdict challenge(DiallingHandshake& dialler, const AnsweringHandshake& answerer) {
    return dialler.take_challenge(std::span(answerer.challenge()).first<kChallengeBytes>());
  }
  static Verdict conclude(DiallingHandshake& dialler, const std::vector<std::byte>& answer) {
    return dialler.take_answer(std::span(answer).first<kAnswerBytes>());
  }
  // What the answerer makes of an honest dialler with this claim.
  Verdict verdict_on(const Claim& said, const Secret& with) {
    DiallingHandshake dialler(with, said, nonce_of(1));
    AnsweringHandshake answerer(secret_, self(), nonce_of(2));
    EXPECT_EQ(challenge(dialler, answerer), Verdict::kWelcome);
    const Verdict verdict = feed(answerer, dialler.claim_frame());
    EXPECT_EQ(conclude(dialler, answerer.answer(verdict)), verdict);
    return verdict;
  }

  core::JobId job_{};
  Secret secret_ = Secret::from_bytes(bytes_of("the secret of this test"));
  Secret other_ = Secret::from_bytes(bytes_of("another secret of this test"));
};

TEST_F(Handshake, ProvesBothSidesAndAgreesOnKeys) {
  DiallingHandshake dialler(secret_, claim(), nonce_of(1));
  AnsweringHandshake answerer(secret_, self(), nonce_of(2));
  ASSERT_EQ(challenge(dialler, answerer), Verdict::kWelcome);
  const auto frame = dialler.claim_frame();
  EXPECT_EQ(frame.size(), kClaimBytes);
  EXPECT_LT(frame.size(), 512U);
  ASSERT_EQ(feed(answerer, frame), Verdict::kWelcome);
  EXPECT_EQ(answerer.claim(), claim());
  const auto answer = answerer.answer(Verdict::kWelcome);
  EXPECT_EQ(answer.size(), kAnswerBytes);
  EXPECT_EQ(conclude(dialler, answer), Verdict::kWelcome);
  EXPECT_EQ(dialler.keys().of_dialler, answerer.keys().of_dialler);
  EXPECT_EQ(dialler.keys().of_answerer, answerer.keys().of_answerer);
  EXPECT_NE(dialler.keys().of_dialler, dialler.keys().of_answerer);
}

TEST_F(Handshake, NamesWhatDiffers) {
  EXPECT_EQ(verdict_on(claim(), secret_), Verdict::kWelcome);
  EXPECT_EQ(verdict_on(claim(), other_), Verdict::kSecret);
  Claim changed = claim();
  changed.job[3] = std::byte{8};
  EXPECT_EQ(verdict_on(changed, secret_), Verdict::kJob);
  changed = claim();
  changed.epoch = 6;
  EXPECT_EQ(verdict_on(changed, secret_), Verdict::kEpoch);
  changed = claim();
  changed.dialled_rank = 4;
  EXPECT_EQ(verdict_on(changed, secret_), Verdict::kRank);
}

TEST_F(Handshake, SaysBothEpochs) {
  Claim ahead = claim();
  ahead.epoch = 6;
  DiallingHandshake dialler(secret_, ahead, nonce_of(1));
  AnsweringHandshake answerer(secret_, self(), nonce_of(2));
  ASSERT_EQ(challenge(dialler, answerer), Verdict::kWelcome);
  ASSERT_EQ(feed(answerer, dialler.claim_frame()), Verdict::kEpoch);
  ASSERT_EQ(conclude(dialler, answerer.answer(Verdict::kEpoch)), Verdict::kEpoch);
  EXPECT_EQ(dialler.explain(Verdict::kEpoch), "it is in epoch 5, this rank in epoch 6");
  EXPECT_EQ(answerer.explain(Verdict::kEpoch), "rank 2 is in epoch 6, this rank in epoch 5");
}

TEST_F(Handshake, SaysBothVersions) {
  const std::string words = "version 9, this rank version " + std::to_string(kProtocolVersion);
  DiallingHandshake dialler(secret_, claim(), nonce_of(1));
  AnsweringHandshake answerer(secret_, self(), nonce_of(2));
  std::vector<std::byte> foreign = answerer.challenge();
  foreign[8] = std::byte{9};
  EXPECT_EQ(dialler.take_challenge(std::span(foreign).first<kChallengeBytes>()), Verdict::kVersion);
  EXPECT_THAT(dialler.explain(Verdict::kVersion), HasSubstr(words));
  auto frame = dialler.claim_frame();
  frame[8] = std::byte{9};
  EXPECT_EQ(feed(answerer, frame), Verdict::kVersion);
  EXPECT_THAT(answerer.explain(Verdict::kVersion), HasSubstr(words));
  EXPECT_EQ(conclude(dialler, answerer.answer(Verdict::kVersion)), Verdict::kVersion);
}

TEST_F(Handshake, RefusesEveryAlteredByteOfAClaim) {
  for (std::size_t i = 0; i < kClaimBytes; ++i) {
    DiallingHandshake dialler(secret_, claim(), nonce_of(1));
    AnsweringHandshake answerer(secret_, self(), nonce_of(2));
    ASSERT_EQ(challenge(dialler, answerer), Verdict::kWelcome);
    auto frame = dialler.claim_frame();
    frame[i] ^= std::byte{1};
    const Verdict expected = i < 8              ? Verdict::kGarbage
                             : i < kPrefixBytes ? Verdict::kVersion
                                                : Verdict::kSecret;
    EXPECT_EQ(feed(answerer, frame), expected) << "byte " << i;
  }
}

TEST_F(Handshake, RefusesEveryAlteredByteOfAChallenge) {
  for (std::size_t i = kPrefixBytes; i < kChallengeBytes; ++i) {
    DiallingHandshake dialler(secret_, claim(), nonce_of(1));
    AnsweringHandshake answerer(secret_, self(), nonce_of(2));
    auto altered = answerer.challenge();
    altered[i] ^= std::byte{1};
    ASSERT_EQ(dialler.take_challenge(std::span(altered).first<kChallengeBytes>()),
              Verdict::kWelcome);
    EXPECT_EQ(feed(answerer, dialler.claim_frame()), Verdict::kSecret) << "byte " << i;
  }
}

TEST_F(Handshake, NeverTakesAnAlteredAnswerForAWelcome) {
  for (std::size_t i = 0; i < kAnswerBytes; ++i) {
    DiallingHandshake dialler(secret_, claim(), nonce_of(1));
    AnsweringHandshake answerer(secret_, self(), nonce_of(2));
    ASSERT_EQ(challenge(dialler, answerer), Verdict::kWelcome);
    ASSERT_EQ(feed(answerer, dialler.claim_frame()), Verdict::kWelcome);
    auto answer = answerer.answer(Verdict::kWelcome);
    answer[i] ^= std::byte{1};
    EXPECT_NE(conclude(dialler, answer), Verdict::kWelcome) << "byte " << i;
  }
}

TEST_F(Handshake, DoesNotTakeARefusalForAWelcome) {
  DiallingHandshake dialler(secret_, claim(), nonce_of(1));
  AnsweringHandshake answerer(secret_, self(), nonce_of(2));
  ASSERT_EQ(challenge(dialler, answerer), Verdict::kWelcome);
  ASSERT_EQ(feed(answerer, dialler.claim_frame()), Verdict::kWelcome);
  auto answer = answerer.answer(Verdict::kRank);
  answer[kPrefixBytes] = std::byte{0};
  EXPECT_EQ(conclude(dialler, answer), Verdict::kSecret);
}

TEST_F(Handshake, RefusesAReplayedClaim) {
  DiallingHandshake dialler(secret_, claim(), nonce_of(1));
  AnsweringHandshake first(secret_, self(), nonce_of(2));
  AnsweringHandshake second(secret_, self(), nonce_of(3));
  ASSERT_EQ(challenge(dialler, first), Verdict::kWelcome);
  const auto recorded = dialler.claim_frame();
  ASSERT_EQ(feed(first, recorded), Verdict::kWelcome);
  EXPECT_EQ(feed(second, recorded), Verdict::kSecret);
}

TEST_F(Handshake, RefusesAReplayedAnswer) {
  DiallingHandshake first(secret_, claim(), nonce_of(1));
  DiallingHandshake second(secret_, claim(), nonce_of(4));
  AnsweringHandshake answerer(secret_, self(), nonce_of(2));
  ASSERT_EQ(challenge(first, answerer), Verdict::kWelcome);
  ASSERT_EQ(challenge(second, answerer), Verdict::kWelcome);
  ASSERT_EQ(feed(answerer, first.claim_frame()), Verdict::kWelcome);
  EXPECT_EQ(conclude(second, answerer.answer(Verdict::kWelcome)), Verdict::kSecret);
}

TEST_F(Handshake, RefusesReflections) {
  // A stranger that sends a dialler its own proof back, or an answerer's own words.
  DiallingHandshake dialler(secret_, claim(), nonce_of(1));
  AnsweringHandshake answerer(secret_, self(), nonce_of(2));
  ASSERT_EQ(challenge(dialler, answerer), Verdict::kWelcome);
  const auto proof = dialler.claim_frame();
  auto answer = answerer.answer(Verdict::kWelcome);
  std::copy(proof.end() - 32, proof.end(), answer.end() - 32);
  EXPECT_EQ(conclude(dialler, answer), Verdict::kSecret);
  std::vector<std::byte> reflected = answerer.challenge();
  reflected.resize(kClaimBytes);
  EXPECT_EQ(feed(answerer, reflected), Verdict::kSecret);
}

TEST_F(Handshake, DoesNotLetAStrangerPassAProofOnToAnotherRank) {
  // The stranger answers rank 2's dial with the challenge it got from rank 4, and passes the claim
  // on.
  DiallingHandshake dialler(secret_, claim(), nonce_of(1));
  AnsweringHandshake rank_4(secret_, {.job = job_, .epoch = 5, .rank = 4}, nonce_of(2));
  ASSERT_EQ(challenge(dialler, rank_4), Verdict::kWelcome);
  EXPECT_EQ(feed(rank_4, dialler.claim_frame()), Verdict::kRank);
}

TEST_F(Handshake, WelcomesEveryEpochWhereNoneIsGiven) {
  Claim said = claim();
  said.epoch = 99;
  DiallingHandshake dialler(secret_, said, nonce_of(1));
  AnsweringHandshake answerer(secret_, {.job = job_, .epoch = std::nullopt, .rank = 3},
                              nonce_of(2));
  ASSERT_EQ(challenge(dialler, answerer), Verdict::kWelcome);
  EXPECT_EQ(feed(answerer, dialler.claim_frame()), Verdict::kWelcome);
  EXPECT_EQ(conclude(dialler, answerer.answer(Verdict::kWelcome)), Verdict::kWelcome);
}

TEST_F(Handshake, UnprovenRefusalsCarryNoProof) {
  AnsweringHandshake answerer(secret_, self(), nonce_of(2));
  const auto answer = answerer.answer(Verdict::kGarbage);
  EXPECT_TRUE(
      std::all_of(answer.end() - 32, answer.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(HandshakeNonce, IsNewEachTime) {
  const auto first = make_nonce();
  const auto second = make_nonce();
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
}

}  // namespace
}  // namespace fasthorovod::transport
