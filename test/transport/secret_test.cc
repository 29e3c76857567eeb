#include "transport/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fasthorovod::transport {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class SecretFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = ::testing::TempDir() + "fasthorovod_secret_" + info->name();
    std::ofstream(path_) << text;
    return path_;
  }
  void TearDown() override { std::remove(path_.c_str()); }

 private:
  std::string path_;
};

TEST_F(SecretFile, IgnoresWhiteSpaceAtTheEnd) {
  auto with = Secret::from_file(write("0123456789abcdef\r\n \n"));
  ASSERT_TRUE(with) << with.error().message;
  const Secret without = Secret::from_bytes(bytes_of("0123456789abcdef"));
  EXPECT_EQ(with->derive_job_id(), without.derive_job_id());
}

TEST_F(SecretFile, RefusesShortOnesWithoutShowingThem) {
  auto secret = Secret::from_file(write("too short      \n"));
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().message, HasSubstr("fewer than 16"));
  EXPECT_THAT(secret.error().message, Not(HasSubstr("too short")));
}

TEST_F(SecretFile, TakesFourKibibytesAndNoMore) {
  EXPECT_TRUE(Secret::from_file(write(std::string(4096, 'x'))));
  EXPECT_FALSE(Secret::from_file(write(std::string(4097, 'x'))));
}

TEST(Secret, NamesAMissingFile) {
  auto secret = Secret::from_file("/nonexistent/secret");
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().message, HasSubstr("/nonexistent/secret"));
}

TEST(Secret, GeneratesSomethingNewEachTime) {
  const auto first = Secret::generate();
  const auto second = Secret::generate();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->size(), 64U);
  EXPECT_EQ(first->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*first, *second);
}

TEST(Secret, MacsDifferByPurposeMessageAndSecret) {
  const Secret secret = Secret::from_bytes(bytes_of("0123456789abcdef"));
  const Secret other = Secret::from_bytes(bytes_of("0123456789abcdeF"));
  const Mac mac = secret.mac("purpose", bytes_of("message"));
  EXPECT_TRUE(equal(mac, secret.mac("purpose", bytes_of("message"))));
  EXPECT_TRUE(equal(mac, secret.copy().mac("purpose", bytes_of("message"))));
  EXPECT_FALSE(equal(mac, secret.mac("Purpose", bytes_of("message"))));
  EXPECT_FALSE(equal(mac, secret.mac("purpose", bytes_of("Message"))));
  EXPECT_FALSE(equal(mac, other.mac("purpose", bytes_of("message"))));
}

TEST(Secret, MacIsHmacSha256) {
  // RFC 4231, test case 2, with the key filled up by zeros as HMAC itself does.
  Mac key{};
  std::ranges::copy(bytes_of("Jefe"), key.begin());
  const Mac mac = mac_under(key, bytes_of("what do ya want for nothing?"));
  EXPECT_EQ(mac[0], std::byte{0x5b});
  EXPECT_EQ(mac[1], std::byte{0xdc});
  EXPECT_EQ(mac[31], std::byte{0x43});
}

TEST(Secret, KeyedMacIsTheSameMac) {
  Mac key{};
  ASSERT_TRUE(fill_random(key));
  KeyedMac keyed(key);
  for (const std::size_t length : {0U, 1U, 55U, 56U, 64U, 65U, 5000U}) {
    const std::vector<std::byte> message(length, std::byte{3});
    EXPECT_EQ(keyed(message), mac_under(key, message)) << length;
  }
}

TEST(Secret, IsGoneFromWhereItWasMoved) {
  Secret first = Secret::from_bytes(bytes_of("0123456789abcdef"));
  const core::JobId job = first.derive_job_id();
  const Secret second = std::move(first);
  EXPECT_EQ(second.derive_job_id(), job);
  EXPECT_NE(first.derive_job_id(), job);  // NOLINT: looked at on purpose
}

}  // namespace
}  // namespace fasthorovod::transport
