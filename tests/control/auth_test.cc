#include "runtime/control/auth.h"

#include <gtest/gtest.h>

namespace hyperrun::control {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// Python: hmac.new(b"key", b"hyperrun-device" + b"c"*32 + b"d"*32 + b"identity", "sha256").hexdigest()
TEST(Auth, SignatureIsHmacSha256OfSideNoncesAndIdentity) {
  EXPECT_EQ(hex(sign("key", Side::kDevice, std::string(32, 'c'), std::string(32, 'd'), "identity")),
            "a2a238ad186041ac40a824e3defe664e04291c0d5e48b229883f6e5aee451738");
  EXPECT_EQ(hex(sign("key", Side::kController, std::string(32, 'c'), std::string(32, 'd'), "identity")),
            "613168efe3c3df677aa1e0d10716888b6bbe4699fbfe47e9b504a4d06fe2749d");
}

TEST(Auth, SecretsAre256BitsAndDiffer) {
  const std::string a = make_secret(), b = make_secret();
  EXPECT_EQ(a.size(), 64u);
  EXPECT_EQ(a.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(a, b);
}

TEST(Auth, Equal) {
  EXPECT_TRUE(equal("abc", "abc"));
  EXPECT_FALSE(equal("abc", "abd"));
  EXPECT_FALSE(equal("abc", "ab"));
  EXPECT_TRUE(equal("", ""));
}

}  // namespace
}  // namespace hyperrun::control
