#include "service-kit/tls/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <span>

namespace tributary::service {
namespace {

constexpr int kNamesMax = 64;
constexpr std::size_t kNameBytesMax = 512;

template <auto kFree>
struct FreeBy {
  void operator()(auto* pointer) const noexcept { kFree(pointer); }
};

std::string text_of(const X509_NAME* name) {
  const std::unique_ptr<BIO, FreeBy<BIO_free>> out(BIO_new(BIO_s_mem()));
  if (!out || X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) < 0) return {};
  char* bytes = nullptr;
  const auto count = BIO_get_mem_data(out.get(), &bytes);
  return count <= 0 ? std::string() : std::string(bytes, std::min(static_cast<std::size_t>(count), kNameBytesMax));
}

std::string text_of(const ASN1_INTEGER* serial) {
  const std::unique_ptr<BIGNUM, FreeBy<BN_free>> number(ASN1_INTEGER_to_BN(serial, nullptr));
  char* digits = number ? BN_bn2hex(number.get()) : nullptr;
  std::string text = digits == nullptr ? "" : digits;
  OPENSSL_free(digits);
  return text;
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<std::int64_t>(::timegm(&parts)) : 0;
}

std::string text_of(const ASN1_STRING& string) {
  const auto bytes = std::span(ASN1_STRING_get0_data(&string), static_cast<std::size_t>(ASN1_STRING_length(&string)));
  return {bytes.begin(), bytes.end()};
}

std::string address_of(const ASN1_OCTET_STRING& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(&address) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(&address) != 16) return {};
  return ::inet_ntop(family, ASN1_STRING_get0_data(&address), text.data(), text.size()) == nullptr ? "" : text.data();
}

/// Returns an empty text for a name of another kind.
std::string text_of(const GENERAL_NAME& name) {
  switch (name.type) {
    case GEN_DNS:
      return "DNS:" + text_of(*name.d.dNSName);
    case GEN_URI:
      return "URI:" + text_of(*name.d.uniformResourceIdentifier);
    case GEN_EMAIL:
      return "email:" + text_of(*name.d.rfc822Name);
    case GEN_IPADD:
      return "IP:" + address_of(*name.d.iPAddress);
    default:
      return {};
  }
}

bool is_plain(const std::string& text) {
  return !text.empty() && text.size() <= kNameBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

std::vector<std::string> names_of(const X509& certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, FreeBy<GENERAL_NAMES_free>> all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = all ? std::min(sk_GENERAL_NAME_num(all.get()), kNamesMax) : 0;
  for (int i = 0; i < count; ++i) {
    std::string text = text_of(*sk_GENERAL_NAME_value(all.get(), i));
    if (is_plain(text)) names.push_back(std::move(text));
  }
  return names;
}

}  // namespace

Certificate describe_certificate(x509_st& certificate) {
  return {.subject = text_of(X509_get_subject_name(&certificate)),
          .issuer = text_of(X509_get_issuer_name(&certificate)),
          .names = names_of(certificate),
          .serial = text_of(X509_get0_serialNumber(&certificate)),
          .not_before = seconds_of(X509_get0_notBefore(&certificate)),
          .not_after = seconds_of(X509_get0_notAfter(&certificate))};
}

std::string utc_text(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  std::array<char, 64> text{};
  if (::gmtime_r(&time, &parts) == nullptr) return "an unknown time";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

}  // namespace tributary::service
