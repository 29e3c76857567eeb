#include "ops/copy_past_caches.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace fasthorovod::ops {
namespace {

constexpr std::byte kUntouched{0xEE};

TEST(CopyPastCaches, CopiesAnyBytesFromAndToAnyAddress) {
  std::vector<std::byte> from(2048);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 % 251);
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 127U, 128U, 191U, 640U, 1500U}) {
    for (std::size_t shift = 0; shift < 130; shift += 13) {
      std::vector<std::byte> to(bytes + 256, kUntouched);
      copy_past_caches(to.data() + shift, from.data() + 129 - shift, bytes);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool copied = i >= shift && i < shift + bytes;
        ASSERT_EQ(to[i], copied ? from[129 - shift + i - shift] : kUntouched)
            << bytes << " bytes to " << shift << ", byte " << i;
      }
    }
  }
}

}  // namespace
}  // namespace fasthorovod::ops
