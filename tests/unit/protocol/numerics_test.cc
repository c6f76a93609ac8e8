#include "tributary/protocol/numerics.h"

#include <gtest/gtest.h>

#include <array>

#include "tributary/protocol/frame.h"

namespace tributary {
namespace {

TEST(Numerics, HaveNames) {
  for (const Numerics numerics : {Numerics::fast, Numerics::exact})
    EXPECT_EQ(numerics_from_string(to_string(numerics)), numerics);
  EXPECT_EQ(numerics_from_string("wide"), Numerics::exact) << "exact sums are wide enough";
  EXPECT_FALSE(numerics_from_string("narrow"));
}

TEST(Numerics, AFrameCarriesTheirOperatorsOnlyOfFloats) {
  for (std::uint8_t type = 0; type < kDTypeCount; ++type) {
    for (const ReduceOp op : {kExactSum, kExactAverage, kExactSumOfHosts, kExactAverageOfHosts, kOrderedProduct}) {
      FrameHeader header;
      header.type = FrameType::contribution;
      header.dtype = DType{type};
      header.op = op;
      std::array<std::byte, kFrameHeaderBytes> bytes{};
      encode(header, bytes);
      const auto decoded = decode(bytes);
      EXPECT_EQ(decoded.has_value(), is_float(DType{type})) << to_string(DType{type});
      if (!decoded) {
        EXPECT_EQ(decoded.error(), FrameReject::op);
      }
    }
  }
}

TEST(Numerics, AFrameCarriesOperatorsOnBitsAndTruthValuesOnlyOfIntegers) {
  for (std::uint8_t type = 0; type < kDTypeCount; ++type) {
    for (int op = 0; op < 256; ++op) {
      FrameHeader header;
      header.type = FrameType::contribution;
      header.dtype = DType{type};
      header.op = ReduceOp{static_cast<std::uint8_t>(op)};
      std::array<std::byte, kFrameHeaderBytes> bytes{};
      encode(header, bytes);
      const bool is_public = op <= 4 || (op <= 10 && !is_float(header.dtype));
      const bool is_internal = op == 64 || (65 <= op && op <= 69 && is_float(header.dtype));
      EXPECT_EQ(decode(bytes).has_value(), is_public || is_internal) << to_string(header.dtype) << " " << op;
    }
  }
}

TEST(Numerics, ExactCallsSayWhatTheyAre) {
  const Signature call{.collective = Collective::all_reduce, .dtype = DType::float32, .op = kExactSum, .count = 7};
  EXPECT_EQ(to_string(call), "all_reduce of 7 float32 (exact sum)");
  Signature between = call;
  between.op = between_hosts(call.op);
  EXPECT_EQ(to_string(between), "all_reduce of 7 float32 (exact sum between hosts)");
  between.op = between_hosts(kExactAverage);
  EXPECT_EQ(to_string(between), "all_reduce of 7 float32 (exact avg between hosts)");
  between.op = kOrderedProduct;
  EXPECT_EQ(to_string(between), "all_reduce of 7 float32 (ordered prod)");
}

}  // namespace
}  // namespace tributary
