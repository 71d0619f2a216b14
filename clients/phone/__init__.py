"""The reference phone: a simulated Android phone that pairs with a relay or chats through a dashboard."""
