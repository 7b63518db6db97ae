"""Short posts: those of all users, with comments, and whom the user follows."""

from typing import Any, ClassVar

from msgspec import field

from .base import World

Post = dict[str, Any]
Result = dict[str, Any]


class PostWorld(World):
    """The leaderboard's `TwitterAPI`."""

    reads: ClassVar[str] = """
        posting_get_login_status list_all_following get_tweet get_user_tweets search_tweets
        get_tweet_comments get_user_stats
    """

    username: str = "john"
    password: str = "john123"  # noqa: S105 - of nobody
    authenticated: bool = False
    tweets: dict[int, Post] = field(default_factory=dict[int, Post])
    comments: dict[Any, list[Any]] = field(default_factory=dict[Any, list[Any]])
    """By the number of the post; the data have texts here, which no call finds."""
    retweets: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    following_list: list[str] = field(default_factory=lambda: ["alice", "bob"])
    tweet_counter: int = 0

    def __post_init__(self) -> None:
        self.tweets = {int(number): post for number, post in self.tweets.items()}

    def authenticate_twitter(self, username: str, password: str) -> Result:
        """Log in the one user that there is."""
        is_right = (username, password) == (self.username, self.password)
        self.authenticated = is_right or self.authenticated
        return {"authentication_status": is_right}

    def posting_get_login_status(self) -> Result:
        """Tell whether the user is logged in."""
        return {"login_status": bool(self.authenticated)}

    def post_tweet(
        self, content: str, tags: list[str] | None = None, mentions: list[str] | None = None
    ) -> Result:
        """Post something under the next number."""
        if not self.authenticated:
            return _refuse("posting")
        number = self.tweet_counter
        self.tweets[number] = {
            "id": number,
            "username": self.username,
            "content": content,
            "tags": [] if tags is None else tags,
            "mentions": [] if mentions is None else mentions,
        }
        self.tweet_counter += 1
        return self.tweets[number]

    def retweet(self, tweet_id: int) -> Result:
        """Post a post again, once."""
        if not self.authenticated:
            return _refuse("retweeting")
        if tweet_id not in self.tweets:
            return _miss(tweet_id)
        own = self.retweets.setdefault(self.username, [])
        if tweet_id in own:
            return {"retweet_status": "Already retweeted"}
        own.append(tweet_id)
        return {"retweet_status": "Successfully retweeted"}

    def comment(self, tweet_id: int, comment_content: str) -> Result:
        """Add a comment to a post."""
        if not self.authenticated:
            return _refuse("commenting")
        if tweet_id not in self.tweets:
            return _miss(tweet_id)
        written = {"username": self.username, "content": comment_content}
        self.comments.setdefault(tweet_id, []).append(written)
        return {"comment_status": "Comment added successfully"}

    def mention(self, tweet_id: int, mentioned_usernames: list[str]) -> Result:
        """Add users to those that a post mentions."""
        if tweet_id not in self.tweets:
            return _miss(tweet_id)
        self.tweets[tweet_id]["mentions"].extend(mentioned_usernames)
        return {"mention_status": "Users mentioned successfully"}

    def follow_user(self, username_to_follow: str) -> Result:
        """Follow somebody who is not followed yet."""
        if not self.authenticated:
            return _refuse("following")
        is_new = username_to_follow not in self.following_list
        if is_new:
            self.following_list.append(username_to_follow)
        return {"follow_status": is_new}

    def list_all_following(self) -> Result:
        """List whom the user follows."""
        if not self.authenticated:
            return _refuse("listing following")
        return {"following_list": self.following_list}

    def unfollow_user(self, username_to_unfollow: str) -> Result:
        """Follow somebody no longer."""
        if not self.authenticated:
            return _refuse("unfollowing")
        is_followed = username_to_unfollow in self.following_list
        if is_followed:
            self.following_list.remove(username_to_unfollow)
        return {"unfollow_status": is_followed}

    def get_tweet(self, tweet_id: int) -> Result:
        """Show a post."""
        return self.tweets[tweet_id] if tweet_id in self.tweets else _miss(tweet_id)

    def get_user_tweets(self, username: str) -> list[Post]:
        """List the posts of a user."""
        return [post for post in self.tweets.values() if post["username"] == username]

    def search_tweets(self, keyword: str) -> list[Post]:
        """List the posts with a word in their text or among their tags."""
        word = keyword.lower()
        return [
            post
            for post in self.tweets.values()
            if word in post["content"].lower() or word in [tag.lower() for tag in post["tags"]]
        ]

    def get_tweet_comments(self, tweet_id: int) -> Any:
        """List the comments on a post."""
        return self.comments.get(tweet_id, []) if tweet_id in self.tweets else _miss(tweet_id)

    def get_user_stats(self, username: str) -> Result:
        """Count what a user wrote, posted again and follows."""
        return {
            "tweet_count": len(self.get_user_tweets(username)),
            "following_count": len(self.following_list) if username == self.username else 0,
            "retweet_count": len(self.retweets.get(username, [])),
        }


def _refuse(doing: str) -> Result:
    return {"error": f"User not authenticated. Please authenticate before {doing}."}


def _miss(tweet_id: int) -> Result:
    return {"error": f"Tweet with ID {tweet_id} not found."}
