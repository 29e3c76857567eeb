#include "transport/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "transport/file_descriptor.h"

namespace fasthorovod::transport {
namespace {

constexpr std::size_t kMinBytes = 16;
constexpr std::size_t kMaxBytes = 4096;

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

bool is_white(std::byte value) {
  return value == std::byte{' '} || (value >= std::byte{'\t'} && value <= std::byte{'\r'});
}

// What a read of the file holds for a moment; wiped however the function is left.
struct Buffer {
  std::array<std::byte, kMaxBytes + 1> bytes;
  std::size_t used = 0;
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

core::Status read_all(int fd, const std::string& path, Buffer& buffer) {
  while (buffer.used < buffer.bytes.size()) {
    // From the start whatever the offset is: a memfd's descriptor may be shared with the process
    // that wrote it.
    ssize_t got = ::pread(fd, buffer.bytes.data() + buffer.used, buffer.bytes.size() - buffer.used,
                          static_cast<off_t>(buffer.used));
    if (got < 0 && errno == ESPIPE) {
      got = ::read(fd, buffer.bytes.data() + buffer.used, buffer.bytes.size() - buffer.used);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return core::system_error(fmt::format("reading the secret file {}", path), errno);
    if (got == 0) return {};
    buffer.used += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace

core::Result<Secret> Secret::from_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid())
    return core::system_error(fmt::format("opening the secret file {}", path), errno);
  Buffer buffer;
  if (auto status = read_all(file.get(), path, buffer); !status) return std::move(status).error();
  if (buffer.used > kMaxBytes) {
    return core::Error{core::ErrorCode::kInvalidArgument,
                       fmt::format("the secret file {} holds more than {} bytes", path, kMaxBytes)};
  }
  while (buffer.used > 0 && is_white(buffer.bytes[buffer.used - 1])) --buffer.used;
  if (buffer.used < kMinBytes) {
    return core::Error{
        core::ErrorCode::kInvalidArgument,
        fmt::format("the secret file {} holds fewer than {} bytes", path, kMinBytes)};
  }
  return from_bytes(std::span(buffer.bytes).first(buffer.used));
}

Secret Secret::from_bytes(std::span<const std::byte> bytes) {
  Secret secret;
  EVP_Digest(bytes.data(), bytes.size(), raw(secret.key_.data()), nullptr, EVP_sha256(), nullptr);
  return secret;
}

core::Result<std::string> Secret::generate() {
  std::array<std::byte, 32> random{};
  if (auto status = fill_random(random); !status) return std::move(status).error();
  std::string text;
  for (const std::byte value : random) text += fmt::format("{:02x}", static_cast<unsigned>(value));
  OPENSSL_cleanse(random.data(), random.size());
  return text;
}

Secret::~Secret() { OPENSSL_cleanse(key_.data(), key_.size()); }

Secret::Secret(Secret&& other) noexcept : key_(other.key_) {
  OPENSSL_cleanse(other.key_.data(), other.key_.size());
}

Secret& Secret::operator=(Secret&& other) noexcept {
  std::swap(key_, other.key_);
  return *this;
}

Secret Secret::copy() const {
  Secret other;
  other.key_ = key_;
  return other;
}

Mac Secret::mac(std::string_view purpose, std::span<const std::byte> message) const {
  Mac key = mac_under(key_, std::as_bytes(std::span(purpose)));
  const Mac result = mac_under(key, message);
  OPENSSL_cleanse(key.data(), key.size());
  return result;
}

core::JobId Secret::derive_job_id() const {
  const Mac full = mac("job id", {});
  core::JobId job{};
  std::copy_n(full.begin(), job.size(), job.begin());
  return job;
}

bool equal(const Mac& a, const Mac& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Mac mac_under(const Mac& key, std::span<const std::byte> message) {
  Mac result{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(message.data()), message.size(),
       raw(result.data()), &length);
  return result;
}

// HMAC is a hash of (outer pad, hash of (inner pad, message)); the states after the pads are kept
// and copied.
struct KeyedMac::Digests {
  Digests() = default;
  Digests(const Digests&) = delete;
  Digests& operator=(const Digests&) = delete;
  ~Digests() {
    EVP_MD_CTX_free(inner);
    EVP_MD_CTX_free(outer);
    EVP_MD_CTX_free(work);
  }
  EVP_MD_CTX* inner = EVP_MD_CTX_new();
  EVP_MD_CTX* outer = EVP_MD_CTX_new();
  EVP_MD_CTX* work = EVP_MD_CTX_new();
};

KeyedMac::KeyedMac(const Mac& key) : digests_(std::make_unique<Digests>()) {
  constexpr std::size_t kBlock = 64;
  const auto absorb_pad = [&key](EVP_MD_CTX* digest, std::byte pad) {
    std::array<std::byte, kBlock> block;
    block.fill(pad);
    for (std::size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
    EVP_DigestInit_ex(digest, EVP_sha256(), nullptr);
    EVP_DigestUpdate(digest, block.data(), block.size());
    OPENSSL_cleanse(block.data(), block.size());
  };
  absorb_pad(digests_->inner, std::byte{0x36});
  absorb_pad(digests_->outer, std::byte{0x5C});
}

KeyedMac::~KeyedMac() = default;

Mac KeyedMac::operator()(std::span<const std::byte> message) {
  Mac mac{};
  EVP_MD_CTX_copy_ex(digests_->work, digests_->inner);
  EVP_DigestUpdate(digests_->work, message.data(), message.size());
  EVP_DigestFinal_ex(digests_->work, raw(mac.data()), nullptr);
  EVP_MD_CTX_copy_ex(digests_->work, digests_->outer);
  EVP_DigestUpdate(digests_->work, mac.data(), mac.size());
  EVP_DigestFinal_ex(digests_->work, raw(mac.data()), nullptr);
  return mac;
}

core::Status fill_random(std::span<std::byte> bytes) {
  if (RAND_bytes(raw(bytes.data()), static_cast<int>(bytes.size())) != 1) {
    return core::Error{core::ErrorCode::kUnavailable, "the system gave no random numbers"};
  }
  return {};
}

}  // namespace fasthorovod::transport
