// What ps-lite carries of a message in its body.
#include "transport/body.h"

#include <gtest/gtest.h>

#include <string>

namespace kvstore_ext {
namespace {

Message ExampleOf(const std::string& text) {
  Message message = ControlMessage(MessageType::kPush, text);
  message.header.key = 7;
  message.header.round = 3;
  return message;
}

TEST(Body, AMessageComesBackWithItsPlaceAndText) {
  const Place place{2, 5000, 77};
  for (const char* text : {"", "settings"}) {
    const std::optional<Message> plain = ReadBody(BodyOf(ExampleOf(text), std::nullopt), false);
    ASSERT_TRUE(plain);
    EXPECT_FALSE(plain->place);
    EXPECT_EQ(plain->text, text);
    EXPECT_EQ(plain->header.key, 7U);
    EXPECT_EQ(plain->header.round, 3U);
    const std::optional<Message> placed = ReadBody(BodyOf(ExampleOf(text), place), true);
    ASSERT_TRUE(placed && placed->place);
    EXPECT_EQ(placed->place->block, place.block);
    EXPECT_EQ(placed->place->bytes, place.bytes);
    EXPECT_EQ(placed->place->ticket, place.ticket);
    EXPECT_EQ(placed->text, text);
  }
}

TEST(Body, WhatIsTooShortForAPlaceHasNone) {
  const std::optional<Message> message = ReadBody(BodyOf(ExampleOf("short"), std::nullopt), true);
  ASSERT_TRUE(message);
  EXPECT_FALSE(message->place);
  EXPECT_EQ(message->text, "short");
}

TEST(Body, AnotherVersionIsNamedByItsFirstBytesAndAStrangerIsNobody) {
  std::string body = BodyOf(ExampleOf(""), std::nullopt);
  EXPECT_FALSE(ReadBody(body.substr(0, body.size() - 1), false));
  body[0] = static_cast<char>(body[0] + 1);
  for (const std::string& of_ours : {body, body.substr(0, 4)}) {
    EXPECT_FALSE(ReadBody(of_ours, false));
    const Message news = NewsOf(of_ours, 5);
    EXPECT_EQ(news.peer, 5);
    EXPECT_EQ(news.header.type, MessageType::kAbort);
    EXPECT_NE(news.text.find("another version"), std::string::npos);
  }
  for (const std::string& foreign : {std::string(), body.substr(0, 3), std::string(64, 'A')}) {
    EXPECT_FALSE(ReadBody(foreign, true));
    EXPECT_EQ(NewsOf(foreign, 5).peer, kNobody);
  }
}

}  // namespace
}  // namespace kvstore_ext
