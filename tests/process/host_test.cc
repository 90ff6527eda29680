#include "runtime/process/host.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace hyperrun::process {
namespace {

TEST(Addresses, OfTheLoopback) { EXPECT_EQ(addresses(4711, true), "127.0.0.1:4711"); }

// Which there are depends on the host.
TEST(Addresses, EachHasThePort) {
  EXPECT_THAT(addresses(4711, false), testing::ContainsRegex("^[^,]+:4711(,[^,]+:4711)*$"));
}

TEST(Addresses, OfAnInterface) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  inet_pton(AF_INET, "192.0.2.7", &four.sin_addr);
  EXPECT_EQ(usable_address(reinterpret_cast<const sockaddr&>(four)), "192.0.2.7");

  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  inet_pton(AF_INET6, "2001:db8::7", &six.sin6_addr);
  EXPECT_EQ(usable_address(reinterpret_cast<const sockaddr&>(six)), "[2001:db8::7]");
  inet_pton(AF_INET6, "fe80::7", &six.sin6_addr);
  EXPECT_EQ(usable_address(reinterpret_cast<const sockaddr&>(six)), "");
}

}  // namespace
}  // namespace hyperrun::process
