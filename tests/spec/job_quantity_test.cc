#include "runtime/spec/job_quantity.h"

#include <gtest/gtest.h>

namespace hyperrun {
namespace {

using K = QuantityKind;

TEST(Quantity, Parses) {
  EXPECT_EQ(parse_quantity(K::kBytes, "64 MiB"), 67108864);
  EXPECT_EQ(parse_quantity(K::kBytes, "64MiB"), 67108864);
  EXPECT_EQ(parse_quantity(K::kBytes, "1.5 kB"), 1500);
  EXPECT_EQ(parse_quantity(K::kBytes, "7 B"), 7);
  EXPECT_EQ(parse_quantity(K::kTime, "2 s"), 2e9);
  EXPECT_EQ(parse_quantity(K::kTime, "0.5 us"), 500);
  EXPECT_EQ(parse_quantity(K::kFlopRate, "2e3 GFLOP/s"), 2e12);
  EXPECT_EQ(parse_quantity(K::kByteRate, "1 GiB/s"), 0x1p30);
}

TEST(Quantity, Refuses) {
  for (const char* text : {"", "64", "MiB", "64 MB/s", "64 mib", "64 Mi B", " 64 MiB", "64 MiB ", "1e999 B",
                           "nan B", "inf B", "0x10 B", "6 4 B", "1,5 MiB"})
    EXPECT_EQ(parse_quantity(K::kBytes, text), std::nullopt) << text;
  EXPECT_EQ(parse_quantity(K::kTime, "1 min"), std::nullopt);
  EXPECT_EQ(parse_quantity(K::kFlopRate, "1 TFLOPS"), std::nullopt);
  EXPECT_EQ(parse_quantity(K::kByteRate, "1e308 TB/s"), std::nullopt) << "not finite";
}

TEST(Quantity, FormatsWithTheLargestUnitThatIsShort) {
  EXPECT_EQ(format_quantity(K::kBytes, 0), "0 B");
  EXPECT_EQ(format_quantity(K::kBytes, 67108864), "64 MiB");
  EXPECT_EQ(format_quantity(K::kBytes, 1500), "1.5 kB");
  EXPECT_EQ(format_quantity(K::kTime, 2e9), "2 s");
  EXPECT_EQ(format_quantity(K::kTime, 500), "500 ns");
  EXPECT_EQ(format_quantity(K::kFlopRate, 353.9e12), "353.9 TFLOP/s");
  EXPECT_EQ(format_quantity(K::kByteRate, 196e9), "196 GB/s");
}

TEST(Quantity, FormatReadsBackExactly) {
  double values[] = {1, 3, 1023, 123456789, 0x1p40, 0x1p40 + 1, 1e15, 1e15 / 3, 0.1, 7e-9, 2.2e9};
  for (K kind : {K::kBytes, K::kTime, K::kFlopRate, K::kByteRate})
    for (double v : values) EXPECT_EQ(parse_quantity(kind, format_quantity(kind, v)), v) << v;
}

}  // namespace
}  // namespace hyperrun
