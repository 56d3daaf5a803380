#pragma once
// Conversations to token ids. The template's own text may hold control tokens; the texts of the
// messages, tools and documents never become any, however they are spelled: nobody can forge a
// turn.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octet {

// The ids of the prompt that `chat` makes of `input`; nothing is put around it. Contents given as
// lists of parts are joined first (join_text_parts).
//
// Control tokens are the special ones, and added tokens that the template spells out. In the given
// texts they are encoded as plain text; one of a single character cannot be. Only where the
// template itself looks for an added token that is not special, as some do for "</think>", does
// that one keep its meaning. A template that looks for a special token in a given text does not
// find it.
//
// Throws BadInput as ChatTemplate::render and Tokenizer::encode do.
std::vector<int32_t> encode_chat(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                 const ChatInput& input);

// Replaces every content that is a list of text parts by one text, the parts joined by line feeds
// (as llama.cpp and vLLM join them). Throws BadInput with the JSON pointer of a part that is not
// {"type": "text", "text": ...}.
void join_text_parts(nlohmann::ordered_json& messages);

}  // namespace octet
