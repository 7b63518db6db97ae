"""Shares: their prices, orders for them, an account, and a list of those that are watched."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from msgspec import field

from .base import World

Result = dict[str, Any]

_NOW: Final = datetime(2024, 9, 1, 10, 30)  # noqa: DTZ001 - of nowhere
_DAY_S: Final = 86_400
_TIME: Final = "%Y-%m-%d %H:%M:%S"
_DATE: Final = "%Y-%m-%d"
_SYMBOLS: Final = {
    "Apple": "AAPL",
    "Google": "GOOG",
    "Tesla": "TSLA",
    "Microsoft": "MSFT",
    "Nvidia": "NVDA",
    "Zeta Corp": "ZETA",
    "Alpha Tech": "ALPH",
    "Omega Industries": "OMEG",
    "Quasar Ltd.": "QUAS",
    "Neptune Systems": "NEPT",
    "Synex Solutions": "SYNX",
    "Amazon": "AMZN",
    "Gorilla": "GORI",
}
_SECTORS: Final = {
    "Technology": ["AAPL", "GOOG", "MSFT", "NVDA"],
    "Automobile": ["TSLA", "F", "GM"],
}
_COLUMNS: Final = ("price", "percent_change", "volume", "MA(5)", "MA(20)")
_STOCKS: Final = {
    "AAPL": (227.16, 0.17, 2.552, 227.11, 227.09),
    "GOOG": (2840.34, 0.24, 1.123, 2835.67, 2842.15),
    "TSLA": (667.92, -0.12, 1.654, 671.15, 668.20),
    "MSFT": (310.23, 0.09, 3.234, 309.88, 310.11),
    "NVDA": (220.34, 0.34, 1.234, 220.45, 220.67),
    "ALPH": (1320.45, -0.08, 1.567, 1321.12, 1325.78),
    "OMEG": (457.23, 0.12, 2.345, 456.78, 458.12),
    "QUAS": (725.89, -0.03, 1.789, 726.45, 728.00),
    "NEPT": (88.34, 0.19, 0.654, 88.21, 88.67),
    "SYNX": (345.67, 0.11, 2.112, 345.34, 346.12),
    "ZETA": (22.09, -0.05, 0.789, 22.12, 22.34),
}
_ORDERS: Final = (
    (12345, "Buy", "AAPL", 210.65, 10, "Completed"),
    (12446, "Sell", "GOOG", 2840.56, 5, "Pending"),
)
_ORDER_COLUMNS: Final = ("id", "order_type", "symbol", "price", "amount", "status")
_NOT_IN: Final = "User not authenticated. Please log in to"


def _make_orders() -> dict[Any, Result]:
    return {row[0]: dict(zip(_ORDER_COLUMNS, row, strict=True)) for row in _ORDERS}


def _make_stocks() -> dict[str, Result]:
    return {symbol: dict(zip(_COLUMNS, row, strict=True)) for symbol, row in _STOCKS.items()}


def _make_account() -> Result:
    return {"account_id": 12345, "balance": 10000.0, "binding_card": 1974202140965533}


class TradingWorld(World):
    """The leaderboard's `TradingBot`."""

    seed: ClassVar[int] = 1_053_520
    reads: ClassVar[str] = """
        get_current_time get_symbol_by_name get_stock_info get_order_details get_account_info
        trading_get_login_status get_watchlist get_order_history get_transaction_history
        get_available_stocks filter_stocks_by_price notify_price_change
    """

    orders: dict[Any, Result] = field(default_factory=_make_orders)
    account_info: Result = field(default_factory=_make_account)
    authenticated: bool = False
    market_status: str = "Closed"
    order_counter: int = 12446
    stocks: dict[str, Result] = field(default_factory=_make_stocks)
    watch_list: list[str] = field(default_factory=lambda: ["NVDA"])
    transaction_history: list[Result] = field(default_factory=list[Result])

    def __post_init__(self) -> None:
        self.orders = {
            int(key) if isinstance(key, str) and key.isdigit() else key: order
            for key, order in self.orders.items()
        }

    def get_current_time(self) -> Result:
        """Show the time, which stands still."""
        return {"current_time": _NOW.strftime("%I:%M %p")}

    def get_symbol_by_name(self, name: str) -> Result:
        """Look up the symbol of a company."""
        return {"symbol": _SYMBOLS.get(name, "Stock not found")}

    def get_stock_info(self, symbol: str) -> Result:
        """Show the figures of a share."""
        if symbol not in self.stocks:
            return {"error": f"Stock with symbol '{symbol}' not found."}
        return self.stocks[symbol]

    def get_order_details(self, order_id: int) -> Result:
        """Show an order."""
        if order_id not in self.orders:
            known = f"Here is the list of orders_id: {list(self.orders)}"
            return {"error": f"Order with ID {order_id} not found.{known}"}
        return self.orders[order_id]

    def cancel_order(self, order_id: int) -> Result:
        """Cancel an order that is not completed."""
        if order_id not in self.orders:
            return {"error": f"Order with ID {order_id} not found."}
        order = self.orders[order_id]
        if order["status"] == "Completed":
            return {"error": f"Can't cancel order {order_id}. Order is already completed."}
        order["status"] = "Cancelled"
        return {"order_id": order_id, "status": "Cancelled"}

    def place_order(self, order_type: str, symbol: str, price: float, amount: int) -> Result:
        """Place an order under the next number; what is bought has to be paid for."""
        if not self.authenticated:
            return {"error": f"{_NOT_IN} place an order."}
        if symbol not in self.stocks:
            return {"error": f"Invalid stock symbol: {symbol}"}
        if price <= 0 or amount <= 0:
            return {"error": "Price and amount must be positive values."}
        cost, balance = float(price) * int(amount), self.account_info.get("balance", 0)
        if order_type.lower() == "buy" and cost > balance:
            what = f"required ${cost:.2f} but only ${balance:.2f} available."
            return {"error": f"Insufficient funds: {what}"}
        row = (self.order_counter, order_type, symbol, float(price), amount, "Open")
        order: Result = dict(zip(_ORDER_COLUMNS, row, strict=True))
        self.orders[self.order_counter] = order
        self.order_counter += 1
        return {
            "order_id": order["id"],
            "order_type": order_type,
            "status": "Pending",
            "price": order["price"],
            "amount": amount,
        }

    def withdraw_funds(self, amount: float) -> Result:
        """Take money from the account, while the market is open."""
        if not self.authenticated:
            return {"error": f"{_NOT_IN} make a transaction."}
        if self.market_status != "Open":
            return {"error": "Market is closed. Transactions are not allowed."}
        if amount <= 0:
            return {"error": "Transaction amount must be positive."}
        if amount > self.account_info["balance"]:
            return {"error": "Insufficient funds for withdrawal."}
        self.account_info["balance"] -= amount
        return self._book("withdrawal", amount, "Withdrawal successful")

    def fund_account(self, amount: float) -> Result:
        """Put money on the account."""
        if not self.authenticated:
            return {"error": f"{_NOT_IN} fund the account."}
        if amount <= 0:
            return {"error": "Funding amount must be positive."}
        self.account_info["balance"] += amount
        return self._book("deposit", amount, "Account funded successfully")

    def get_account_info(self) -> Result:
        """Show the account."""
        if not self.authenticated:
            return {"error": f"{_NOT_IN} view account information."}
        return self.account_info

    def trading_login(self, username: str, password: str) -> Result:
        """Log in whoever asks for it."""
        if self.authenticated:
            return {"status": "Already logged in"}
        self.authenticated = True
        return {"status": "Logged in successfully"}

    def trading_get_login_status(self) -> Result:
        """Tell whether somebody is logged in."""
        return {"status": bool(self.authenticated)}

    def trading_logout(self) -> Result:
        """Log out whoever is logged in."""
        if not self.authenticated:
            return {"status": "No user is currently logged in"}
        self.authenticated = False
        return {"status": "Logged out successfully"}

    def get_watchlist(self) -> Any:
        """List the shares that are watched."""
        if not self.authenticated:
            return [f"Error: {_NOT_IN} view the watchlist."]
        return {"watchlist": self.watch_list}

    def add_to_watchlist(self, stock: str) -> Result:
        """Watch a share that there is."""
        if stock not in self.watch_list and stock in self.stocks:
            self.watch_list.append(stock)
        return {"watchlist": self.watch_list}

    def remove_stock_from_watchlist(self, symbol: str) -> Result:
        """Watch a share no longer."""
        if not self.authenticated:
            return {"error": f"{_NOT_IN} modify the watchlist."}
        if symbol not in self.watch_list:
            return {"error": f"Stock {symbol} not found in watchlist."}
        self.watch_list.remove(symbol)
        return {"status": f"Stock {symbol} removed from watchlist successfully."}

    def get_order_history(self) -> Any:
        """List the numbers of all orders."""
        if not self.authenticated:
            return [{"error": f"{_NOT_IN} view order history."}]
        return {"history": list(self.orders)}

    def get_transaction_history(
        self, start_date: str | None = None, end_date: str | None = None
    ) -> Any:
        """List what was booked, all or between two days."""
        if not self.authenticated:
            return [{"error": f"{_NOT_IN} view transaction history."}]
        start = _parse(start_date, _DATE) if start_date else datetime.min  # noqa: DTZ901
        end = _parse(end_date, _DATE) if end_date else datetime.max  # noqa: DTZ901
        booked = self.transaction_history
        found = [each for each in booked if start <= _parse(each["timestamp"], _TIME) <= end]
        return {"transaction_history": found}

    def get_available_stocks(self, sector: str) -> Result:
        """List the shares of a sector."""
        return {"stock_list": list(_SECTORS.get(sector, ()))}

    def filter_stocks_by_price(
        self, stocks: list[str], min_price: float, max_price: float
    ) -> Result:
        """List the shares within a range of prices; an unknown one costs nothing."""
        prices = {symbol: self.stocks.get(symbol, {}).get("price", 0) for symbol in stocks}
        found = [symbol for symbol in stocks if min_price <= prices[symbol] <= max_price]
        return {"filtered_stocks": found}

    def notify_price_change(self, stocks: list[str], threshold: float) -> Result:
        """Name the shares whose price changed by so many per cent."""
        changed = [
            symbol
            for symbol in stocks
            if symbol in self.stocks and abs(self.stocks[symbol]["percent_change"]) >= threshold
        ]
        if not changed:
            return {"notification": "No significant price changes in the selected stocks."}
        return {"notification": f"Stocks {', '.join(changed)} have significant price changes."}

    def _book(self, kind: str, amount: float, status: str) -> Result:
        moment = _NOW + timedelta(seconds=self._random.randint(0, _DAY_S))
        booked = {"type": kind, "amount": amount, "timestamp": moment.strftime(_TIME)}
        self.transaction_history.append(booked)
        return {"status": status, "new_balance": self.account_info["balance"]}


def _parse(text: str, form: str) -> datetime:
    return datetime.strptime(text, form)  # noqa: DTZ007 - of nowhere
