#include "runtime/control/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>

#include "runtime/base/error.h"

namespace hyperrun::control {

std::string random_bytes(std::size_t n) {
  std::string bytes(n, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(n)) != 1)
    throw Error(Code::kControl, "the system has no random numbers to give");
  return bytes;
}

std::string make_secret() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : random_bytes(32)) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string sign(std::string_view secret, Side side, std::string_view controller_nonce,
                 std::string_view device_nonce, std::string_view identity) {
  // The nonces have a fixed size (checked by the receiver), so no two different inputs give the same text.
  std::string text(side == Side::kDevice ? "hyperrun-device" : "hyperrun-server");
  text.append(controller_nonce).append(device_nonce).append(identity);
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned int size = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  HR_CHECK(done != nullptr && size == 32);
  return {reinterpret_cast<const char*>(mac.data()), size};
}

bool equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace hyperrun::control
