// The secret of a run: a process that knows it belongs to the run. It is never sent. Both sides prove that
// they know it by HMAC-SHA256 over fresh nonces of both, so a listener learns nothing and can replay nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hyperrun::control {

inline constexpr std::size_t kNonceBytes = 32;

std::string random_bytes(std::size_t n);
std::string make_secret();  // 256 random bits, in hex

enum class Side { kDevice, kController };  // part of the signed text: no answer serves both sides

std::string sign(std::string_view secret, Side side, std::string_view controller_nonce,
                 std::string_view device_nonce, std::string_view identity);

// Compares in a time that does not depend on the texts.
bool equal(std::string_view a, std::string_view b);

}  // namespace hyperrun::control
