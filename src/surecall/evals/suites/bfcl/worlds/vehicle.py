"""A car: doors, engine, brakes, climate, and the way to somewhere."""

from typing import Any, ClassVar, Final

from msgspec import field

from .base import World

Result = dict[str, Any]

_MAX_FUEL: Final = 50
_MILES_PER_GALLON: Final = 20.0
_GALLONS_PER_LITRE: Final = 0.264172
_LITRES_PER_GALLON: Final = 3.78541
_FULL_FORCE: Final = 1000
_MAX_SPEED: Final = 120
_DOORS: Final = ("driver", "passenger", "rear_left", "rear_right")
_TIRES: Final = ("frontLeft", "frontRight", "rearLeft", "rearRight")
_ZIPCODES: Final = {
    "Rivermist": "83214",
    "Stonebrook": "74532",
    "Maplecrest": "56108",
    "Silverpine": "62947",
    "Shadowridge": "71354",
    "Sunset Valley": "83462",
    "Oakendale": "47329",
    "Willowbend": "52013",
    "Crescent Hollow": "69238",
    "Autumnville": "51479",
    "San Francisco": "94016",
}
_DISTANCES: Final = {
    frozenset({"83214", "74532"}): 750.0,
    frozenset({"56108", "62947"}): 320.0,
    frozenset({"71354", "83462"}): 450.0,
    frozenset({"47329", "52013"}): 290.0,
    frozenset({"69238", "51479"}): 630.0,
    frozenset({"94016", "83214"}): 980.0,
    frozenset({"94016", "94704"}): 600.0,
    frozenset({"94704", "08540"}): 2550.0,
    frozenset({"94016", "08540"}): 1950.0,
    frozenset({"62947", "47329"}): 1053.0,
    frozenset({"94016", "62947"}): 780.0,
    frozenset({"74532", "94016"}): 880.0,
}
_SHOWN: Final = {
    "fuel": {"fuelLevel": "fuelLevel"},
    "battery": {"batteryVoltage": "batteryVoltage"},
    "doors": {"doorStatus": "doorStatus"},
    "climate": {
        "currentACTemperature": "acTemperature",
        "fanSpeed": "fanSpeed",
        "climateMode": "acMode",
        "humidityLevel": "humidityLevel",
    },
    "headlights": {"headlightStatus": "headLightStatus"},
    "parkingBrake": {
        "parkingBrakeStatus": "parkingBrakeStatus",
        "parkingBrakeForce": "_parkingBrakeForce",
        "slopeAngle": "_slopeAngle",
    },
    "brakePedal": {"brakePedalStatus": "brakePedalStatus", "brakePedalForce": "_brakePedalForce"},
    "engine": {"engineState": "engine_state"},
}
"""What each display shows, and the field that it is read from."""


class VehicleWorld(World):
    """The leaderboard's `VehicleControlAPI`."""

    seed: ClassVar[int] = 141_053
    reads: ClassVar[str] = """
        get_outside_temperature_from_weather_com displayCarStatus display_log
        estimate_drive_feasibility_by_mileage liter_to_gallon gallon_to_liter estimate_distance
        get_zipcode_based_on_city check_tire_pressure find_nearest_tire_shop
    """
    keys: ClassVar = {
        "engine_state": "engineState",
        "_parkingBrakeForce": "parkingBrakeForce",
        "_slopeAngle": "slopeAngle",
        "_brakePedalForce": "brakePedalForce",
    }

    fuelLevel: float = 0.0
    batteryVoltage: float = 12.6
    engine_state: str = "stopped"
    remainingUnlockedDoors: int = 4
    doorStatus: dict[str, str] = field(default_factory=lambda: dict.fromkeys(_DOORS, "unlocked"))
    acTemperature: float = 25.0
    fanSpeed: int = 50
    acMode: str = "auto"
    humidityLevel: float = 50.0
    headLightStatus: str = "off"
    parkingBrakeStatus: str = "released"
    brakePedalStatus: str = "released"
    distanceToNextVehicle: float = 50.0
    cruiseStatus: str = "inactive"
    destination: str = "None"
    frontLeftTirePressure: float = 32.0
    frontRightTirePressure: float = 32.0
    rearLeftTirePressure: float = 30.0
    rearRightTirePressure: float = 30.0
    _parkingBrakeForce: float = 0.0
    _slopeAngle: float = 0.0
    _brakePedalForce: float = 0.0

    def __post_init__(self) -> None:
        locked = [door for door, status in self.doorStatus.items() if status == "locked"]
        self.remainingUnlockedDoors = len(_DOORS) - len(locked)

    def startEngine(self, ignitionMode: str) -> Result:
        """Start the engine when the doors are locked and the brake is pressed; or stop it."""
        if ignitionMode == "STOP":
            self.engine_state = "stopped"
        problem = self._find_obstacle()
        if problem is None and ignitionMode != "START":
            problem = "Invalid ignition mode."
        if problem is not None:
            return {"error": problem}
        self.engine_state = "running"
        return {
            "engineState": self.engine_state,
            "fuelLevel": self.fuelLevel,
            "batteryVoltage": self.batteryVoltage,
        }

    def fillFuelTank(self, fuelAmount: float) -> Result:
        """Add fuel, as far as the tank has room."""
        if fuelAmount < 0:
            return {"error": "Fuel amount cannot be negative."}
        if self.fuelLevel + fuelAmount > _MAX_FUEL:
            return {"error": "Cannot fill gas above the tank capacity."}
        if self.fuelLevel + fuelAmount < 0:
            return {"error": "Fuel tank is empty. Min fuel level is 0 gallons."}
        self.fuelLevel += fuelAmount
        return {"fuelLevel": self.fuelLevel}

    def lockDoors(self, unlock: bool, door: list[str]) -> Result:
        """Lock or unlock doors, one after the other."""
        status, change = ("unlocked", 1) if unlock else ("locked", -1)
        for each in door:
            if self.doorStatus[each] != status:
                self.doorStatus[each] = status
                self.remainingUnlockedDoors += change
        return {"lockStatus": status, "remainingUnlockedDoors": self.remainingUnlockedDoors}

    def adjustClimateControl(
        self, temperature: float, unit: str = "celsius", fanSpeed: int = 50, mode: str = "auto"
    ) -> Result:
        """Set temperature, fan and mode."""
        if not 0 <= fanSpeed <= 100:
            return {"error": "Fan speed must be between 0 and 100."}
        self.acTemperature = temperature
        if unit == "fahrenheit":
            self.acTemperature = (temperature - 32) * 5 / 9
        self.fanSpeed, self.acMode = fanSpeed, mode
        return {
            "currentACTemperature": temperature,
            "climateMode": mode,
            "humidityLevel": self.humidityLevel,
        }

    def get_outside_temperature_from_google(self) -> Result:
        """Show a temperature that is left to chance."""
        return {"outsideTemperature": self._random.uniform(-10.0, 40.0)}

    def get_outside_temperature_from_weather_com(self) -> Result:
        """Fail, as always."""
        return {"error": 404}

    def setHeadlights(self, mode: str) -> Result:
        """Switch the headlights; they are off in the automatic mode."""
        if mode not in ("on", "off", "auto"):
            return {"error": "Invalid headlight mode."}
        self.headLightStatus = "on" if mode == "on" else "off"
        return {"headlightStatus": self.headLightStatus}

    def displayCarStatus(self, option: str) -> Result:
        """Show one of the displays."""
        if option not in _SHOWN:
            return {"error": "Invalid option"}
        return {key: getattr(self, name) for key, name in _SHOWN[option].items()}

    def activateParkingBrake(self, mode: str) -> Result:
        """Engage or release the parking brake."""
        if mode not in ("engage", "release"):
            return {"error": "Invalid mode"}
        self.parkingBrakeStatus = f"{mode}d"
        self._parkingBrakeForce = 500.0 if mode == "engage" else 0.0
        self._slopeAngle = 10.0
        return {
            "parkingBrakeStatus": self.parkingBrakeStatus,
            "_parkingBrakeForce": self._parkingBrakeForce,
            "_slopeAngle": self._slopeAngle,
        }

    def pressBrakePedal(self, pedalPosition: float) -> Result:
        """Press the brake so far, from not at all to fully."""
        if not 0 <= pedalPosition <= 1:
            return {"error": "Pedal position must be between 0 and 1."}
        return self._brake(pedalPosition * _FULL_FORCE if pedalPosition else 0.0)

    def releaseBrakePedal(self) -> Result:
        """Take the foot off the brake."""
        return self._brake(0.0)

    def setCruiseControl(
        self, speed: float, activate: bool, distanceToNextVehicle: float
    ) -> Result:
        """Switch the cruise control; it needs a running engine and an even speed."""
        distance, speed = float(distanceToNextVehicle), float(speed)
        if self.engine_state == "stopped":
            return {"error": "Start the engine before activating the cruise control."}
        self.distanceToNextVehicle = distance
        if activate and (not 0 <= speed <= _MAX_SPEED or speed % 5 != 0):
            return {"error": "Invalid speed"}
        self.cruiseStatus = "active" if activate else "inactive"
        return {
            "cruiseStatus": self.cruiseStatus,
            "currentSpeed": speed,
            "distanceToNextVehicle": distance,
        }

    def get_current_speed(self) -> Result:
        """Show a speed that is left to chance."""
        return {"currentSpeed": self._random.uniform(0.0, 120.0)}

    def display_log(self, messages: list[str]) -> Result:
        """Show the messages."""
        return {"log": messages}

    def estimate_drive_feasibility_by_mileage(self, distance: float) -> Result:
        """Tell whether the fuel is enough for so many miles."""
        return {"canDrive": not self.fuelLevel * _MILES_PER_GALLON < distance}

    def liter_to_gallon(self, liter: float) -> Result:
        """Convert litres to gallons."""
        return {"gallon": liter * _GALLONS_PER_LITRE}

    def gallon_to_liter(self, gallon: float) -> Result:
        """Convert gallons to litres."""
        return {"liter": gallon * _LITRES_PER_GALLON}

    def estimate_distance(self, cityA: str, cityB: str) -> Result:
        """Look up the distance between two zip codes, in either direction."""
        distance = _DISTANCES.get(frozenset({cityA, cityB}))
        if distance is None:
            return {"error": "distance not found in database."}
        return {"distance": distance}

    def get_zipcode_based_on_city(self, city: str) -> Result:
        """Look up the zip code of a city."""
        return {"zipcode": _ZIPCODES.get(city, "00000")}

    def set_navigation(self, destination: str) -> Result:
        """Set where to go."""
        self.destination = destination
        return {"status": "Navigating to " + destination}

    def check_tire_pressure(self) -> Result:
        """Show the pressure of each tire, and whether their mean is healthy."""
        names = [f"{place}TirePressure" for place in _TIRES]
        pressures = {name: getattr(self, name) for name in names}
        is_healthy = 30 <= sum(pressures.values()) / len(pressures) <= 35
        return {**pressures, "healthy_tire_pressure": is_healthy, "car_info": {}}

    def find_nearest_tire_shop(self) -> Result:
        """Show the only tire shop there is."""
        return {"shopLocation": "456 Oakwood Avenue, Rivermist, 83214"}

    def _find_obstacle(self) -> str | None:
        """Say why the engine cannot start."""
        if self.remainingUnlockedDoors > 0:
            doors = [door for door, status in self.doorStatus.items() if status == "unlocked"]
            what = "All doors must be locked before starting the engine."
            return f"{what} Here are the unlocked doors: {', '.join(doors)}"
        if self.brakePedalStatus != "pressed":
            return "Brake pedal needs to be pressed when starting the engine."
        if self._brakePedalForce != _FULL_FORCE:
            return "Must press the brake fully before starting the engine."
        return "Fuel tank is empty." if self.fuelLevel < 0 else None

    def _brake(self, force: float) -> Result:
        self.brakePedalStatus = "pressed" if force else "released"
        self._brakePedalForce = force
        return {"brakePedalStatus": self.brakePedalStatus, "brakePedalForce": float(force)}
