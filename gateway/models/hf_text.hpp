// The texts of a model as its folder has them: tokenizer and chat template behind one face.
#pragma once

#include <filesystem>
#include <memory>

#include "gateway/api/model_text.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// A folder without a chat template still completes texts; chats with it are refused by name.
[[nodiscard]] Result<std::shared_ptr<const ModelText>> load_model_text(const std::filesystem::path& folder);

}  // namespace sangam
