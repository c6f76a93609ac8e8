#pragma once
// Sentences about failures of TLS: they name the certificate, the mistake and the remedy.
#include <string>
#include <string_view>

#include "service-kit/tls/tls_context.h"

namespace tributary::service {

/// Says what is wrong with the certificate that the other side has shown. `host`: the name or address that it must
/// have; empty: any name is accepted.
[[nodiscard]] std::string fault_words(const TlsFault& fault, const std::string& host, const TlsFiles& files);

/// Says why a connection failed, by the fault if there is one, else by OpenSSL's code. `code`: the value of an error of
/// Asio's category for TLS. `message`: that error's own text.
[[nodiscard]] std::string failure_words(const TlsFault& fault, int code, const std::string& message,
                                        const std::string& host, const TlsFiles& files);

/// Says whether the code means that the other side sent plain HTTP.
[[nodiscard]] bool is_plain_http(int code) noexcept;

}  // namespace tributary::service
