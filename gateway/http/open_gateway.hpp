// A gateway whose models' texts come from wherever the caller has them.
#pragma once

#include <memory>

#include "gateway/gateway.hpp"
#include "gateway/models/model_catalog.hpp"

namespace sangam {

/// As Gateway::start, with `read` in place of the files.
[[nodiscard]] Result<std::unique_ptr<Gateway>> open_gateway(GatewayOptions options, const ModelReader& read,
                                                            PostOffice& post);

}  // namespace sangam
