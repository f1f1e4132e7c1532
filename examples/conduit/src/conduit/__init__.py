"""The RealWorld API: users, profiles, articles, comments, tags, favourites and a feed."""
