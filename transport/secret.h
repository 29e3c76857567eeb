// The job secret and what is derived from it. The bytes never appear in messages, logs or traces,
// and are wiped when the object goes.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/world.h"

namespace fasthorovod::transport {

using Mac = std::array<std::byte, 32>;

class Secret final {
 public:
  /// Reads a secret file: at least 16 bytes after trailing white space is cut, at most 4 KiB. The
  /// error names the file, never its contents.
  static core::Result<Secret> from_file(const std::string& path);
  static Secret from_bytes(std::span<const std::byte> bytes);
  /// 32 random bytes as 64 hex digits: what a launcher writes into the file.
  static core::Result<std::string> generate();

  ~Secret();
  Secret(Secret&&) noexcept;
  Secret& operator=(Secret&&) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  /// A second owner of the same secret, said aloud.
  [[nodiscard]] Secret copy() const;

  /// HMAC-SHA256 of `message` under a key derived for `purpose`.
  [[nodiscard]] Mac mac(std::string_view purpose, std::span<const std::byte> message) const;

  /// The job id of jobs that were not given one.
  [[nodiscard]] core::JobId derive_job_id() const;

 private:
  Secret() = default;
  Mac key_{};  // SHA-256 of the file's bytes
};

/// Compares in constant time.
bool equal(const Mac& a, const Mac& b);

/// HMAC-SHA256 of `message` under a key of one connection, which the handshake derived.
Mac mac_under(const Mac& key, std::span<const std::byte> message);

/// The same for many messages under one key: what depends on the key alone is computed once.
/// Thread: owner.
class KeyedMac final {
 public:
  explicit KeyedMac(const Mac& key);
  ~KeyedMac();
  KeyedMac(const KeyedMac&) = delete;
  KeyedMac& operator=(const KeyedMac&) = delete;

  Mac operator()(std::span<const std::byte> message);

 private:
  struct Digests;
  std::unique_ptr<Digests> digests_;
};

/// Fills `bytes` from the system's random source.
core::Status fill_random(std::span<std::byte> bytes);

}  // namespace fasthorovod::transport
