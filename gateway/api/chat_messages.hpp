// The `messages` of a chat, checked and brought into the one form that templates know.
#pragma once

#include <boost/json/array.hpp>

#include "gateway/api/errors.hpp"

namespace sangam {

/// Role `developer` becomes `system`, lists of text parts become one string (joined by newlines), and the
/// arguments of tool calls become objects. Content that is not text is refused by its type.
[[nodiscard]] ApiResult<boost::json::array> normal_messages(const boost::json::array& messages);

}  // namespace sangam
