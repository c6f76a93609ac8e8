#pragma once
// The types of each version of the net tables, by the version's number.
#include "client/plugins/nccl/abi/net.h"

namespace tributary::nccl::abi {

inline constexpr int kNetVersionOldest = 6, kNetVersionNewest = 12;

template <int kVersion>
struct NetVersion;
template <>
struct NetVersion<6> {
  using Table = NetV6;
  using Properties = PropertiesV6;
};
template <>
struct NetVersion<7> {
  using Table = NetV7;
  using Properties = PropertiesV7;
};
template <>
struct NetVersion<8> {
  using Table = NetV8;
  using Properties = PropertiesV8;
};
template <>
struct NetVersion<9> {
  using Table = NetV9;
  using Properties = PropertiesV9;
};
template <>
struct NetVersion<10> {
  using Table = NetV10;
  using Properties = PropertiesV10;
};
template <>
struct NetVersion<11> {
  using Table = NetV11;
  using Properties = PropertiesV11;
};
template <>
struct NetVersion<12> {
  using Table = NetV12;
  using Properties = PropertiesV12;
};

template <int kVersion>
using NetTable = NetVersion<kVersion>::Table;

}  // namespace tributary::nccl::abi
